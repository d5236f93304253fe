import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { reportFile } from '../../../core/exports/report.ts'
import { replaceFile } from '../../../core/storage/durable.ts'
import { cached } from '../../../core/storage/cached.ts'
import { nameExport } from '../../../core/exports/plan.ts'
import type { Publication } from '../../../core/state/publications.ts'
import { publicationOf } from '../../core/exports/record-read.ts'

/** A data folder in which runs have published, and whose parts are pruned. */
async function createFolder(published: readonly Partial<Publication>[], reported: readonly string[] = []) {
  const dataDir = await mkdtemp(join(tmpdir(), 'run-name-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  for (const run of reported) await replaceFile(reportFile({ dataDir, run, ending: '.json' }), '{}')
  const all = () => Promise.resolve(published.map((one) => publicationOf({ run: 'typed', ...one })))
  const of = { dataDir, shared: cached(dataDir), state: { publications: { all } } }
  return async (workflowId: string, runId = 'second') =>
    nameExport({ ...of, execution: { workflowId, runId } })
}

test.each<[string, Partial<Publication>]>([
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
