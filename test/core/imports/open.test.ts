import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseImportInput } from '../../../core/imports/input.ts'
import { openImport } from '../../../core/imports/open.ts'
import { openIdColumn } from '../../../core/imports/read-ids.ts'
import { openFile } from '../../../core/imports/open-file.ts'
import { readMapping } from '../../../core/imports/mapping/mapping.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { cached } from '../../../core/storage/cached.ts'
import { temporaryFolder, temporaryState } from '../state/temporary-folder.ts'

const identity = { workspace: 'acc_1', baseUrl: 'http://127.0.0.1', mode: 'live', store: 's' } as const

async function open(dataDir: string, input: object, runId: string, settleMs = 0) {
  const state = await temporaryState(dataDir)
  return await openImport({
    deps: { dataDir, shared: cached(dataDir), identity, settleMs, notes: createRunNotes(state) },
    input: parseImportInput({ kind: 'products', ...input }),
    execution: { workflowId: 'import-1', runId },
    startedAt: '2026-11-22T00:00:00Z',
    takeLeases: async () => {},
  })
}

test('a stored input is not copied again: every run of it refers to it', async () => {
  const dataDir = await temporaryFolder()
  const text = 'name;unit_label\na;b\n'
  await writeFile(join(dataDir, 'rows.csv'), text)
  const first = await open(dataDir, { file: 'rows.csv' }, 'r1')
  expect(first.file).toMatch(/^imports\/input\/[0-9a-f]{64}\/file\/rows\.csv$/)
  expect(await readFile(join(dataDir, first.file), 'utf8')).toBe(text)
  const { file, mapping, fingerprint } = first
  const { ino } = await stat(join(dataDir, file))
  const again = await open(dataDir, { file, mapping }, 'r2')
  expect(again).toMatchObject({ run: 'import-1', file, mapping, fingerprint })
  expect((await stat(join(dataDir, file))).ino).toBe(ino)
  expect((await open(dataDir, { file, mapping, locale: 'es-CL' }, 'r3')).run).toBe('import-1.2')
})

test('a run keeps the encoding and the form of tax ids that its input names, and reads its copy in them', async () => {
  const dataDir = await temporaryFolder()
  await writeFile(join(dataDir, 'rows.csv'), Buffer.from('name;unit_label\nMu\x96oz;mes\n', 'latin1'))
  const input = { file: 'rows.csv', encoding: 'macintosh', taxIds: 'without-digit' }
  const { file, mapping } = await open(dataDir, input, 'r1')
  const kept = await readMapping(join(dataDir, mapping))
  expect(kept).toMatchObject({ encoding: 'macintosh', taxIds: 'without-digit' })
  const opened = await openFile({ kind: 'products', path: join(dataDir, file), mapping: kept })
  expect((await Array.fromAsync(opened.changes()))[0]?.body).toMatchObject({ name: 'Muñoz' })
  expect(() => parseImportInput({ kind: 'products', ...input, encoding: 'latin-9' })).toThrow(/encoding/)
})

test('a row without an answer is never looked up sooner than the worker lets a lost request take effect', async () => {
  const dataDir = await temporaryFolder()
  await writeFile(join(dataDir, 'rows.csv'), 'name;unit_label\na;b\n')
  const waitOf = async (runId: string, more: object) =>
    (await open(dataDir, { file: 'rows.csv', ...more }, runId, 60_000)).verifyAfter
  expect(await waitOf('r1', {})).toBe(60)
  expect(await waitOf('r2', { verifyAfter: '2m' })).toBe(120)
  expect(await waitOf('r3', { verifyAfter: 0 })).toBe(60)
})

test.each([
  [{}, false],
  [{ attended: true }, true],
  // Whoever approves it can answer its breaker, too.
  [{ approval: true }, true],
])('a run of %j asks whether to go on where its breaker gives up: %s', async (input, attended) => {
  const dataDir = await temporaryFolder()
  await writeFile(join(dataDir, 'rows.csv'), 'name;unit_label\na;b\n')
  expect(await open(dataDir, { file: 'rows.csv', ...input }, 'r1')).toMatchObject({ attended })
})

test('a file of ids is read whatever the encoding of its other columns', async () => {
  const path = join(await temporaryFolder(), 'ids.csv')
  await writeFile(path, Buffer.from('id;name\rsub_1;Mu\x96oz\rsub_2;Pe\x96a\r', 'latin1'))
  expect(await Array.fromAsync((await openIdColumn({ path })).ids())).toEqual(['sub_1', 'sub_2'])
})
