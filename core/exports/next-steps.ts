import { inputCommand } from '../runs/inputs.ts'
import { connector } from '../runs/view/shell.ts'
import type { NextStep } from '../runs/view/view.ts'
import { exportInput, fetchInput, isHeeded } from './input.ts'
import type { ExportPlan } from './plan.ts'
import { type ExportedItem, isPublished } from './report.ts'

/** The next steps after an export or a fetch, with complete commands. */
export function exportNextSteps({
  plan,
  exports,
}: {
  plan: ExportPlan
  exports: readonly ExportedItem[]
}): NextStep[] {
  const { run } = plan
  const published = exports.filter(isPublished)
  const unproven = published.filter(({ verdict }) => verdict === 'unproven')
  const { missing = { count: 0, first: [] } } = published[0] ?? {}
  const open = exports.filter((item) => !isPublished(item))
  const unread = namesOf(open.filter(({ destination }) => destination === null))
  const unpublished = new Set(open.flatMap(({ destination }) => destination ?? []))
  const capped = namesOf(unproven.filter((one) => one.capped))
  const doubtful = namesOf(unproven.filter((one) => !one.capped))
  const steps: (NextStep & { isDue: boolean })[] = [
    {
      isDue: unpublished.size > 0,
      text: 'once that is fixed, publish without reading again',
      command: connector`run publish ${run} --to ${[...unpublished].join(',')}`,
    },
    {
      isDue: unread.length > 0,
      text: `to read ${unread.join(', ')} again`,
      command: commandOf(plan, unread, { keepCap: true }),
    },
    {
      isDue: capped.length > 0,
      text: `a read of ${capped.join(', ')} that is not cut short after ${plan.maxPages} requests can be proven`,
      command: commandOf(plan, capped),
    },
    {
      isDue: doubtful.length > 0,
      text: `another read of ${doubtful.join(', ')} without the reasons above would be proven`,
      command: commandOf(plan, doubtful),
    },
    {
      isDue: missing.count > missing.first.length && published.every(({ manifest }) => manifest === null),
      text: 'to have all ids that do not exist in a file',
      command: connector`run publish ${run} --to csv`,
    },
    {
      isDue: published.some(({ heldBack }) => heldBack > 0),
      text: 'if the service is right that these records are gone, mark them as deleted',
      command: connector`run publish ${run} --max-deletes all`,
    },
  ]
  return steps.flatMap(({ isDue, ...step }) => (isDue ? [step] : []))
}

const namesOf = (exports: readonly ExportedItem[]): string[] => [
  ...new Set(exports.map(({ resource }) => resource)),
]

/** The command that runs an export or fetch of these resources again. */
function commandOf(
  plan: ExportPlan,
  resources: readonly string[],
  { keepCap = false }: { keepCap?: boolean } = {},
): string {
  const { to, exclude, hash, out, schema, filters, maxPages, forExcel, requested } = plan
  const input = {
    to: to.join(',') === 'csv' ? undefined : to,
    maxPages: keepCap ? maxPages : undefined,
    mode: Object.keys(plan.since).length > 0 ? 'incremental' : undefined,
    exclude,
    hash,
    out,
    // The parts may have been published again to other destinations, which refuse what they do not heed.
    schema: isHeeded('schema', to) ? schema : undefined,
    filters,
    forExcel: forExcel && isHeeded('forExcel', to),
  }
  return requested === undefined
    ? inputCommand(['export', ...resources], exportInput, input)
    : inputCommand(['fetch', ...resources, '<the same ids>'], fetchInput, input)
}
