import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { reportFile } from '../../../core/exports/report-files.ts'
import { replaceFile } from '../../../core/storage/durable.ts'
import { cached } from '../../../core/storage/cached.ts'
import { nameExport } from '../../../core/exports/name.ts'
import { notePublished, type PublishedNote } from '../../../core/exports/publication-log.ts'

const note = (more: Partial<PublishedNote>): PublishedNote => ({
  resource: 'plans',
  destination: 'csv',
  run: 'typed',
  workspace: 'acc_1',
  testMode: false,
  verdict: 'proven',
  mode: 'full',
  filters: {},
  capped: false,
  excluded: [],
  hashed: [],
  forExcel: false,
  startedAt: '2026-03-01T03:00:00.000Z',
  publishedAt: '2026-03-01T03:01:00.000Z',
  ...more,
})

/** A data folder in which runs have published, and whose parts are pruned. */
async function createFolder(published: readonly Partial<PublishedNote>[], reported: readonly string[] = []) {
  const dataDir = await mkdtemp(join(tmpdir(), 'run-name-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  for (const one of published) await notePublished({ dataDir, published: note(one) })
  for (const run of reported) await replaceFile(reportFile({ dataDir, run, ending: '.json' }), '{}')
  const shared = cached(dataDir)
  return async (workflowId: string, runId = 'second') =>
    nameExport({ dataDir, shared, execution: { workflowId, runId } })
}

test.each<[string, Partial<PublishedNote>]>([
  ['as files', { destination: 'csv', manifest: '/elsewhere/plans/typed/manifest.json' }],
  ['to a warehouse', { destination: 'postgres', place: 'schema billing of b' }],
  ['test data', { destination: 'duckdb', testMode: true }],
  ['without a proof', { verdict: 'unproven', capped: true }],
])(
  'a name under which a run has published %s is not given again, though its parts are gone',
  async (_, how) => {
    const name = await createFolder([how, { ...how, run: 'typed.2' }])
    expect(await name('typed')).toBe('typed.3')
    expect(await name('typed')).toBe('typed.3')
    expect(await name('typed', 'third')).toBe('typed.4')
    expect(await name('another')).toBe('another')
  },
)

test('a name whose folder is that of a published run is not given', async () => {
  const name = await createFolder([{ run: 'latest' }])
  expect(await name('_latest')).toBe('_latest.2')
})

test('a name that a run which published nothing has is not given again, because its report would be replaced', async () => {
  const name = await createFolder([{ run: 'typed.2' }], ['typed', 'latest'])
  expect(await name('typed')).toBe('typed.3')
  expect(await name('_latest')).toBe('_latest.2')
  expect(await name('other')).toBe('other')
})
