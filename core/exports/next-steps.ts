import { inputCommand } from '../runs/input-fields.ts'
import { shell } from '../runs/view/shell.ts'
import type { NextStep } from '../runs/view/view.ts'
import { exportInput, fetchInput } from './input.ts'
import type { ExportPlan } from './plan.ts'
import { publishedOf, type ResourceResult } from './report.ts'

/** What a person does after an export or a fetch, with its commands filled in. */
export function exportNextSteps({
  plan,
  results,
}: {
  plan: ExportPlan
  results: readonly ResourceResult[]
}): NextStep[] {
  const { run } = plan
  const published = results.flatMap(publishedOf)
  const unpublished = results.flatMap((result) =>
    'published' in result
      ? [...(result.failed ?? []).map(({ destination }) => destination), ...(result.unpublished ?? [])]
      : [],
  )
  const unread = results.filter((result) => !('published' in result)).map(({ resource }) => resource)
  const unproven = published.filter(({ verdict }) => verdict === 'unproven')
  const capped = namesOf(unproven.filter(({ capped: isCapped }) => isCapped))
  const doubtful = namesOf(unproven.filter(({ capped: isCapped }) => !isCapped))
  const held = published.filter(({ heldBack }) => heldBack > 0)
  const destinations = [...new Set(unpublished)].join(',')
  return [
    ...(destinations === ''
      ? []
      : [
          {
            text: 'once that is fixed, publish without reading again',
            command: shell`connector publish ${run} --to ${destinations}`,
          },
        ]),
    ...(unread.length === 0
      ? []
      : [
          { text: `to read ${unread.join(', ')} again`, command: commandOf(plan, unread, { keepCap: true }) },
        ]),
    ...(capped.length === 0
      ? []
      : [
          {
            text: `a read of ${capped.join(', ')} that is not cut short by --max-pages ${plan.maxPages} can be proven`,
            command: commandOf(plan, capped),
          },
        ]),
    ...(doubtful.length === 0
      ? []
      : [
          {
            text: `another read of ${doubtful.join(', ')} without the reasons above would be proven`,
            command: commandOf(plan, doubtful),
          },
        ]),
    ...(held.length === 0
      ? []
      : [
          {
            text: 'if the service is right that these records are gone, mark them as deleted',
            command: shell`connector publish ${run} --max-deletes all`,
          },
        ]),
  ]
}

const namesOf = (published: readonly { resource: string }[]): string[] => [
  ...new Set(published.map(({ resource }) => resource)),
]

/** The command that runs an export or fetch of these resources again. */
function commandOf(
  plan: ExportPlan,
  resources: readonly string[],
  { keepCap = false }: { keepCap?: boolean } = {},
): string {
  const { to, exclude, hash, out, schema, filters, maxPages, forExcel, ids } = plan
  const input = {
    to: to.join(',') === 'csv' ? undefined : to,
    maxPages: keepCap ? maxPages : undefined,
    mode: Object.keys(plan.since).length > 0 ? 'incremental' : undefined,
    exclude,
    hash,
    out,
    schema,
    filters,
    forExcel,
  }
  return ids === undefined
    ? inputCommand(['export', ...resources], exportInput, input)
    : inputCommand(['fetch', ...resources, '<the same ids>'], fetchInput, input)
}
