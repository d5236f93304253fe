import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { toInstant } from '../billing/instants.ts'
import {
  isDocumentName,
  type ListName,
  listResources,
  type ResourceName,
} from '../billing/resources/lists.ts'
import type { DanglingReason, Reference } from '../destinations/manifest.ts'
import type { SourceRecord } from '../reading/record.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { temporaryName } from '../storage/durable.ts'
import type { Drift } from '../tables/drift.ts'
import { type AnyOutcome, type Checkpoint, loadCheckpoint, outcomeOf } from './parts/checkpoint.ts'
import { fetchParts } from './parts/chunks.ts'
import { knownReadPlan, partsFolder, type ReadPlan } from './parts/read-plan.ts'
import { type ExportPlan, privacyOf } from './plan.ts'
import { type Field, type LookUps, lookUpMissing } from './missing-parents.ts'

/** The note of a run on the references of a list, and what it knows: the ends of the reads, and what was found there. */
export const referencesOf = (resource: ResourceName): `references of ${string}` => `references of ${resource}`
export type ReferenceNotes = Record<
  ReturnType<typeof referencesOf>,
  { checkpoints: Partial<Record<ResourceName, string>>; found: Reference[] }
>

/** Of more ids, only the number is reported. */
const mostNamed = 100
/** The share of the requests of the reads that lookups may add, and how many they always may. */
const lookUpShare = { ofRequests: 0.02, least: 10 }

/**
 * The lists of a run whose records name those of another: it is read after them, so that a record that existed while it
 * was named is in the export, unless it has been deleted in between.
 */
export function readAfter(resources: readonly ResourceName[]): Partial<Record<ResourceName, ResourceName[]>> {
  const lists = Object.values(listResources).filter(({ name }) => resources.includes(name))
  const after = lists.map(({ name }): [ListName, ListName[]] => [
    name,
    lists.filter((one) => Object.values(one.refersTo ?? {}).includes(name)).map((one) => one.name),
  ])
  return Object.fromEntries(after.filter(([, children]) => children.length > 0))
}

interface Deps {
  dataDir: string
  shared: SharedFolder
}

interface Read extends ReadPlan {
  checkpoint: Checkpoint
  outcome: AnyOutcome
}

/**
 * Checks whether the records that a list names are in the same run's reads of their lists, and looks up why some are not.
 *
 * @param options.checkpoints the ends of the reads; those of the lists that could not be read are missing
 */
export async function checkReferences(options: {
  deps: Deps
  plan: ExportPlan
  resource: ResourceName
  checkpoints: Partial<Record<ResourceName, string>>
  billing: Billing
  signal: AbortSignal
}): Promise<Reference[]> {
  const { deps, plan, resource, checkpoints, billing, signal } = options
  if (isDocumentName(resource)) return []
  const { refersTo = {} } = listResources[resource]
  const fields = Object.entries(refersTo)
    .map(([path, to]) => ({ resource, path, to: to as ListName }))
    .filter(({ to }) => plan.resources.includes(to))
  const whyNot = ({ to }: Field): string | undefined => {
    if ([resource, to].some((name) => checkpoints[name] === undefined)) return `${to} were not read`
    if (Object.keys(plan.filters).length > 0) return 'the lists are filtered'
    if (plan.maxPages !== undefined) return 'the reads were cut short'
    // It has only the records that changed.
    return plan.since[to] === undefined ? undefined : 'incremental'
  }
  const reads = new Map<ListName, Read>()
  // Their parts may be many.
  const needed = fields.filter((field) => whyNot(field) === undefined).flatMap(({ to }) => [resource, to])
  for (const name of new Set(needed))
    reads.set(name, await findRead({ deps, plan, signal }, name, checkpoints[name]!))
  const requests = [...reads.values()].reduce((sum, { outcome }) => sum + outcome.requests, 0)
  const left = Math.max(lookUpShare.least, Math.floor(requests * lookUpShare.ofRequests))
  const lookUps = { billing, left, signal }
  const references: Reference[] = []
  for (const field of fields) {
    const why = whyNot(field)
    const [from, to] = [reads.get(resource), reads.get(field.to)] as [Read, Read]
    references.push(
      why === undefined
        ? await checkReference({ deps, plan, field, from, to, lookUps })
        : unchecked(field, why),
    )
  }
  return references
}

async function findRead(
  { deps, plan, signal }: { deps: Deps; plan: ExportPlan; signal: AbortSignal },
  resource: ListName,
  name: string,
): Promise<Read> {
  const { dataDir, shared } = deps
  const folder = partsFolder({ dataDir, run: plan.run, resource })
  const checkpoint = await loadCheckpoint({ shared, folder, name })
  await fetchParts({ shared, parts: checkpoint.parts, signal })
  return { ...(await knownReadPlan({ shared, folder })), checkpoint, outcome: outcomeOf(checkpoint) }
}

const nameOf = ({ resource, path, to }: Field) => ({ field: `${resource}.${path}`, to })

/** @param why instead of the number of values that were checked */
const unchecked = (field: Field, why: string): Reference => ({
  ...nameOf(field),
  checked: why,
  complete: false,
  dangling: { ids: 0, reasons: {}, first: [] },
})

async function checkReference(of: {
  deps: Deps
  plan: ExportPlan
  field: Field
  from: Read
  to: Read
  lookUps: LookUps
}): Promise<Reference> {
  const { deps, plan, field, from, to, lookUps } = of
  const known = nameOf(field)
  const table = from.tables.find(({ columns }) => columns.some(({ source }) => source === known.field))
  const column = table?.columns.find(({ source }) => source === known.field)
  if (table === undefined || column === undefined) return unchecked(field, 'the field is excluded')
  const isHashed = (resource: ListName, name: string) =>
    privacyOf({ plan, resource, hashedWith: from.hashedWith }).hashed.includes(name)
  const hidesIds = isHashed(field.to, `${field.to}.id`)
  if (isHashed(field.resource, known.field) !== hidesIds)
    return unchecked(field, `only one of the field and ${field.to}.id is hashed`)
  const [parents] = to.tables
  // A worker that only writes CSV loads DuckDB for this alone.
  const { findDangling } = await import('../destinations/duckdb/references.ts')
  const { checked, ids, first } = await findDangling({
    from: { table, column: column.name, parts: from.checkpoint.parts },
    to: { table: parents!, column: parents!.key[0]!, parts: to.checkpoint.parts },
    beside: temporaryName(
      join(partsFolder({ ...deps, run: plan.run, resource: field.resource }), 'references'),
    ),
    most: mostNamed,
    signal: lookUps.signal,
  })
  const reasons = hidesIds
    ? first.map((): DanglingReason => 'unknown')
    : await lookUpMissing({ field, missing: first, lookUps, reasonOf: reasonIn(plan, to.outcome) })
  const counts: Partial<Record<DanglingReason, number>> =
    ids > first.length ? { unknown: ids - first.length } : {}
  for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1
  const isProven = [from, to].every(({ outcome }) => outcome.verdict === 'proven')
  const isWhole = plan.since[field.resource] === undefined
  return {
    ...known,
    checked,
    complete: ids === 0 && isProven && isWhole && !hasMisfits(from.checkpoint.drift, known.field),
    dangling: { ids, reasons: counts, first: first.map((one, at) => ({ ...one, reason: reasons[at]! })) },
  }
}

/** What is known of the references of a run. */
export async function notedReferences(
  notes: Pick<RunNotes, 'read'>,
  { run, resources }: Pick<ExportPlan, 'run' | 'resources'>,
): Promise<Reference[]> {
  const noted = await notes.read<ReferenceNotes>(run)
  return resources.flatMap((resource) => noted[referencesOf(resource)]?.found ?? [])
}

/** Whether some values of a field, or objects that would have it, were not what the schema says: nobody looked for these. */
const hasMisfits = ({ misfits }: Drift, field: string): boolean =>
  Object.keys(misfits).some((path) => path === field || field.startsWith(`${path}.`))

/** Why a record that the service has is not in the read of its list. */
export const reasonIn =
  ({ identity }: Pick<ExportPlan, 'identity'>, { verdict, completeThrough }: AnyOutcome) =>
  (record: SourceRecord): DanglingReason => {
    const mode = record['test_mode']
    if (typeof mode === 'boolean' && mode !== (identity.mode === 'test')) return 'elsewhere'
    const isCovered = (toInstant(record['created']) ?? Infinity) <= (toInstant(completeThrough) ?? -Infinity)
    return verdict === 'proven' && isCovered ? 'hidden' : 'unread'
  }
