import { changesThrough, seriesOf } from '../../../core/exports/watermark.ts'
import type { Publication } from '../../../core/state/publications.ts'

type Read = Omit<Parameters<typeof changesThrough>[0], 'series' | 'deps' | 'plan'> &
  Parameters<typeof seriesOf>[0] & { hashedWith: string | undefined }

let runs = 0

/** Records a read as published, as a run of its own that was started after those before. */
export async function recordRead(of: Read): Promise<Publication> {
  const { deps, plan, resource, manifest } = of
  const series = await seriesOf(of, of.hashedWith)
  runs += 1
  const publication: Publication = {
    ...series,
    run: `run-${runs}`,
    mode: plan.since[resource] === undefined ? 'full' : 'incremental',
    capped: false,
    verdict: manifest.verdict,
    startedAt: new Date(Date.parse('2026-11-20T00:00:00Z') + runs * 1000).toISOString(),
    completeThrough: manifest.completeThrough,
    changesThrough: await changesThrough({ ...of, series }),
    seenClaims: plan.seenClaims?.[resource] ?? 0,
  }
  await deps.state.publications.add(publication)
  return publication
}

/** A proven, whole export of all customers to DuckDB, with what is told otherwise. */
export const publicationOf = (more: Partial<Publication> = {}): Publication => ({
  resource: 'customers',
  destination: 'duckdb',
  run: 'run',
  location: '',
  baseUrl: 'https://billing.example/api/v1',
  workspace: 'acc_1',
  testMode: false,
  verdict: 'proven',
  mode: 'full',
  filters: {},
  capped: false,
  excluded: [],
  hashed: [],
  hashedWith: '',
  forExcel: false,
  startedAt: new Date().toISOString(),
  completeThrough: null,
  changesThrough: null,
  seenClaims: 0,
  ...more,
})
