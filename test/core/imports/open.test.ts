import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseImportInput } from '../../../core/imports/input.ts'
import { openImport } from '../../../core/imports/open.ts'
import { uploadPrefix } from '../../../core/imports/plan.ts'
import { openIdColumn } from '../../../core/imports/read-ids.ts'
import { copyInput } from '../../../core/imports/upload.ts'
import { openFile } from '../../../core/imports/open-file.ts'
import { readMapping } from '../../../core/imports/mapping/mapping.ts'
import { temporaryFolder } from './csv-file.ts'

const identity = {
  workspace: 'acc_1',
  baseUrl: 'http://127.0.0.1',
  mode: 'live',
  store: 's',
} as const

async function upload(dataDir: string, text: string) {
  const file = join(dataDir, 'rows.csv')
  await writeFile(file, text)
  const folder = join('imports', `${uploadPrefix}1`)
  await mkdir(join(dataDir, folder), { recursive: true })
  const copied = await copyInput({ files: { file, mapping: {} }, to: join(dataDir, folder) })
  return { file: join(folder, copied.file), mapping: join(folder, copied.mapping) }
}

const open = (dataDir: string, input: object, runId: string) =>
  openImport({
    deps: { dataDir, identity, settleMs: 0 },
    input: parseImportInput({ kind: 'products', ...input }),
    execution: { workflowId: 'import-1', runId },
    startedAt: '2026-11-22T00:00:00Z',
    takeLeases: async () => {},
  })

test('an upload is removed once the run has its copy, and a second start with the same input finds that copy', async () => {
  const dataDir = await temporaryFolder()
  const input = await upload(dataDir, 'name;unit_label\na;b\n')
  const plan = await open(dataDir, input, 'r1')
  expect(await readFile(join(dataDir, plan.file), 'utf8')).toBe('name;unit_label\na;b\n')
  expect(await readdir(join(dataDir, 'imports'))).toEqual(['import-1'])
  expect(await open(dataDir, input, 'r2')).toMatchObject({ run: 'import-1', fingerprint: plan.fingerprint })
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

test('a file of ids is read whatever the encoding of its other columns', async () => {
  const path = join(await temporaryFolder(), 'ids.csv')
  await writeFile(path, Buffer.from('id;name\rsub_1;Mu\x96oz\rsub_2;Pe\x96a\r', 'latin1'))
  expect(await Array.fromAsync((await openIdColumn({ path })).ids())).toEqual(['sub_1', 'sub_2'])
})
