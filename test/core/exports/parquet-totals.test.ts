import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import { checkCertificate, findUnchecked } from '../../../core/exports/certificate-check.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import type { Privacy } from '../../../core/tables/privacy.ts'
import { createWorkplace, facts } from '../destinations/publication.ts'

const tiers = '"tiers":[{"amount":1},{"amount":0.000000001},{}]'
const plans = [
  `{"id":"a","created":"2026-01-01T00:00:00Z","currency":"USD","amount":1.500,${tiers}}`,
  `{"id":"\\ufeffa","created":"2026-02-01T00:00:00+03:00","currency":"CLP","amount":12e-1,${tiers}}`,
  '{"id":"b","currency":"no currency","amount":123456789012345678901234567890.5,"more":"\\ud800"}',
  '{"id":"c","currency":"USD","amount":"no number"}',
  '{"id":"e","currency":"\\ufeffUSD","amount":2}',
  '{"id":"d"}',
  '{"id":"f","_misfits":{"amount":"5"}}',
]

/** The plans in Parquet. There is no certificate. */
async function publish(more: Partial<Publication> = {}, privacy: Privacy = {}) {
  const workplace = await createWorkplace()
  onTestFinished(() => workplace.close())
  const publication = await workplace.toPublication('plans', [plans], more, privacy)
  const { location, manifest } = await createParquetDestination().publish(publication)
  return { location, manifest, store: createFolderStore(location) }
}

/** What is said of an export that claims something else. */
async function check(claim: (manifest: Manifest) => void, privacy: Privacy = {}) {
  const drift = { 'plans.amount': { count: 1, example: 'a text' } }
  const { store, manifest } = await publish({ facts: { ...facts, drift } }, privacy)
  claim(manifest)
  return await checkCertificate(store, '', manifest)
}

const nothingElse = 'The export is not what it claims to be: it has no certificate.'

test('the totals of an export in Parquet are those of its rows, and no folder is needed that a stopped check would leave', async () => {
  onTestFinished(() => void vi.unstubAllEnvs())
  const noFolder = () => vi.stubEnv('TMPDIR', import.meta.filename)
  expect(await check(noFolder)).toBe(nothingElse)
})

test('nothing but the chain is checked of Parquet in a bucket', async () => {
  const { store, manifest } = await publish()
  const bucket = { ...store, folder: undefined }
  expect(findUnchecked(bucket, manifest)).toEqual(['rows', 'totals'])
  manifest.totals.columns = {}
  expect(await checkCertificate(bucket, '', manifest)).toBe(nothingElse)
})

test('numbers that their columns do not hold are added up although _extra was left out, whatever drift is claimed', async () => {
  const privacy = { exclude: ['plans._extra', 'plan_tiers._extra'] }
  expect(await check(() => {}, privacy)).toBe(nothingElse)
  const claim = ({ totals, drift }: Manifest) => {
    totals.columns['plans.amount']!.sum = '1'
    drift['plans.amount']!.count++
  }
  expect(await check(claim, privacy)).toContain('totals of plans.amount')
})

test.each<[string, (manifest: Manifest) => void]>([
  ['totals of plans.amount', ({ totals }) => (totals.columns['plans.amount']!.sum = '1.5')],
  ['totals of plans.amount', ({ totals }) => (totals.columns['plans.amount']!.byCurrency!['USD'] = '1.51')],
  ['totals of plans.amount', ({ totals }) => totals.columns['plans.amount']!.empty++],
  ['totals of plan_tiers.amount', ({ totals }) => (totals.columns['plan_tiers.amount']!.sum = '2')],
  ['newest record', ({ totals }) => (totals.created!.newest = '2026-02-01T00:00:00Z')],
  ['other months', ({ totals }) => (totals.created!.months!['2026-01'] = 2)],
  ['plan_tiers has 6 rows, not 7', ({ tables }) => (tables[1]!.rows = 7)],
])('an export in Parquet is refused that claims other %s', async (words, claim) => {
  expect(await check(claim)).toContain(words)
})

test.each<[string, (folder: string, manifest: Manifest) => unknown]>([
  ['is none', (folder) => writeFile(join(folder, 'plans.parquet'), 'a text, and no Parquet')],
  [
    'lacks a column',
    (_folder, { tables }) => {
      tables[0]!.columns.push({ ...tables[0]!.columns.find(({ kind }) => kind === 'decimal')!, name: 'fee' })
    },
  ],
])('a Parquet file that %s is not what it claims to be', async (_, spoil) => {
  const { location, store, manifest } = await publish()
  await spoil(location, manifest)
  expect(await checkCertificate(store, '', manifest)).toBe(
    'The export is not what it claims to be: DuckDB cannot read its files as the manifest has them.',
  )
})
