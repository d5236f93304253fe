import { join } from 'node:path'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import { findProven } from '../../../core/exports/proven.ts'
import {
  type ExportedItem,
  type ExportReport,
  isPublished,
  reportFile,
} from '../../../core/exports/report.ts'
import { placeOf } from '../../../core/exports/watermark.ts'
import { readNote } from '../../../core/runs/run-files.ts'
import type { Publication } from '../../../core/state/publications.ts'
import { toFileName } from '../../../core/storage/file-name.ts'
import type { EndedRun, Records } from './ended-run.ts'

export async function isExported(records: Records, ended: EndedRun): Promise<boolean | undefined> {
  const { dataDir, state, files } = records
  const { run, startTime } = ended
  const report = await readReport({ dataDir, run })
  if (report === undefined) return undefined
  const { identity, missing, exports } = report
  if (identity?.store !== state.storeId || missing !== undefined) return false
  const published = (await state.publications.all({ testMode: identity.mode === 'test' })).filter(
    ({ workspace }) => workspace === identity.workspace,
  )
  const plan = await readNote<ExportPlan>(join(dataDir, 'parts', toFileName(run), 'plan.json'))
  // Without the plan, nobody knows where a list was to be published that was not read.
  if (
    plan === undefined &&
    exports.some(({ verdict, destination }) => verdict === 'failed' && destination === null)
  )
    return false
  const needs = exports.flatMap((item) => needsOf(item, plan?.to ?? []))
  for (const { resource, destination, isWarned } of needs) {
    const own = published.findLast(
      (one) => one.run === run && one.resource === resource && one.destination === destination,
    )
    const asked: Asked | undefined = own ?? (plan && noteOf({ plan, resource, destination }))
    if (asked === undefined) return false
    const found = await findProven({
      published,
      files,
      wanted: {
        ...asked,
        resource,
        destination,
        // Only a full read shows again which records are gone.
        mode: isWarned || asked.mode === 'full' ? 'full' : 'incremental',
        when: (one) => !one.capped && Date.parse(one.startedAt) >= startTime.getTime(),
      },
    })
    if (found === undefined) return false
    if (isWarned && !(await isWithoutWarnings({ dataDir, run: found.run, resource, destination })))
      return false
  }
  return needs.length > 0
}

const readReport = (of: { dataDir: string; run: string }) =>
  readNote<ExportReport>(reportFile({ ...of, ending: '.json' }))

interface Need {
  resource: ExportedItem['resource']
  destination: ExportPlan['to'][number]
  /** Proven, with a warning for a person. */
  isWarned?: true
}

/** What needs a person. What a person has stopped does not. */
function needsOf(item: ExportedItem, to: ExportPlan['to']): Need[] {
  const { resource, destination, verdict } = item
  if (isPublished(item) && item.warnings.length > 0)
    return [{ resource, destination: item.destination, isWarned: true }]
  if (verdict === 'proven' || verdict === 'stopped') return []
  return (destination === null ? to : [destination]).map((one) => ({ resource, destination: one }))
}

type Asked = Pick<Publication, 'mode' | 'filters' | 'excluded' | 'hashed' | 'forExcel'> & {
  place?: string | undefined
}

/** The same facts of what was not published. */
const noteOf = ({ plan, resource, destination }: Need & { plan: ExportPlan }): Asked => ({
  mode: plan.since[resource] === undefined ? 'full' : 'incremental',
  filters: plan.filters,
  place: placeOf(plan, destination),
  excluded: plan.exclude,
  hashed: plan.hash,
  forExcel: plan.forExcel && destination === 'csv',
})

async function isWithoutWarnings(of: Required<Omit<Need, 'isWarned'>> & { dataDir: string; run: string }) {
  const { resource, destination } = of
  const published = (await readReport(of))?.exports.filter(isPublished) ?? []
  return published.some(
    (one) => one.resource === resource && one.destination === destination && one.warnings.length === 0,
  )
}
