import type { Billing } from '../billing/client.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { ChangeState } from '../state/schema.ts'
import { outwardMessage } from '../runs/errors.ts'
import { parseBody, targetOf } from './body.ts'
import { textOf } from './compare-fields.ts'
import { ChangeError } from './errors.ts'
import type { ChangeKind } from './change-kind.ts'
import { changeKinds } from './kinds.ts'
import { type LookupDeps, lookUp } from './reconcile.ts'
import { transition } from './transitions.ts'

export type Decision =
  /** It exists under this id. */
  | { exists: string }
  /** It does not exist: send it again. */
  | { absent: true }
  /** Drop it. */
  | { drop: true }

export interface Resolution {
  ledger: Ledger
  billing: Billing
  /** Given by tests that send changes of their own. */
  kinds?: Readonly<Record<string, ChangeKind>>
  run: string
  row: number
  decision: Decision
  by: string
  why: string
  /** The row when the decision was first to be applied: it says nothing about what happened to it since. */
  found?: Pick<LedgerRow, 'claims' | 'closedAt'> | undefined
  signal?: AbortSignal | undefined
}

/**
 * Applies a person's decision on a parked change, or corrects an earlier decision that it exists; `by` and `why` go into
 * the report. Repeating the same decision changes nothing. Returns whether the service confirms the id.
 * @throws {ChangeError} the change is neither parked nor resolved as existing, nothing about it is in doubt, the service has
 * one that is said to be absent, another run has updated the record since, or it cannot have the id
 * @throws {KeyHeldError} if another run has staged the same key in the meantime
 */
export async function resolveChange(resolution: Resolution): Promise<Confirmation | undefined> {
  const { ledger, kinds = changeKinds, run, row, decision, by, why } = resolution
  const change = await ledger.row({ run, row })
  const { found = change } = resolution
  if (change === undefined) throw notParked(resolution, undefined)
  const isCorrection = isResolved(change)
  const isSame = change.resolvedBy === by && change.resolvedWhy === why
  const { to, outcome, patch: decided } = endOf(decision)
  const isLater = change.claims !== found?.claims || change.closedAt !== found.closedAt
  const isApplied = change.outcome === outcome && change.answerId === decided.answerId
  if (isSame && (isLater || isApplied)) return undefined
  if (isLater || (change.state !== 'parked' && !isCorrection)) throw notParked(resolution, change.state)
  const kind = (kinds as Readonly<Record<string, ChangeKind>>)[change.kind]
  if (kind === undefined) throw new RangeError(`no kind of change is called ${change.kind}`)
  if (!isCorrection && kind.isInDoubt?.(change) === false) throw notInDoubt(change)
  if ('absent' in decision) {
    await refuseFound({ ...resolution, kind }, change)
    await refuseOvertaken({ ledger, kind }, change)
  }
  const confirmation =
    'exists' in decision ? await confirmId(resolution, { kind, row: change, id: decision.exists }) : undefined
  const closedAt = to === 'staged' ? null : ledger.now()
  const patch = { resolvedBy: by, resolvedWhy: why, ...decided, closedAt }
  // An answer that arrives meanwhile wins.
  const fromOutcome = change.outcome
  if (await transition({ ledger, row: change, by: 'person', to, outcome, patch, fromOutcome }))
    return confirmation
  throw notParked(resolution, (await ledger.row({ run, row }))?.state)
}

/** A person has said that it exists. */
const isResolved = ({ state, outcome }: LedgerRow): boolean => state === 'done' && outcome === 'resolved'

/**
 * Refuses once that rows are absent which were parked, or resolved as existing, when the ledger was restored: the decisions
 * that it has lost may have sent them. `found`: the rows when the decision was first to be applied, so that an attempt which
 * repeats one that was lost on the way names all of them.
 * @throws {ChangeError}
 */
export async function refuseRestored(
  { ledger, run, decision }: Pick<Resolution, 'ledger' | 'run' | 'decision'>,
  rows: readonly number[],
  found: ReadonlyMap<number, Pick<LedgerRow, 'closedAt'>>,
): Promise<void> {
  if (!('absent' in decision)) return
  const repairedAt = await ledger.repairedAt()
  const isOlder = ({ closedAt }: Pick<LedgerRow, 'closedAt'>) => (closedAt ?? 0) < repairedAt
  const changes: LedgerRow[] = []
  for (const row of rows) {
    const change = await ledger.row({ run, row })
    if (change?.state === 'parked' || (change && isResolved(change))) changes.push(change)
  }
  const restored = changes.filter(isOlder)
  if (restored.length === 0) return
  for (const { id, claims } of restored)
    await ledger.move({ id, from: ['parked', 'done'], claims, patch: { closedAt: ledger.now() } })
  const named = changes.filter((change) => isOlder(found.get(change.row) ?? change))
  const these = named.map(({ row }) => row).join(', ')
  throw new ChangeError(
    'RestoredRowError',
    `The ledger was restored from a backup since these rows of ${run} were parked or resolved: ${these}. They may ` +
      'have been resolved again and sent in between. Look each of them up in the service; if it is not there, decide again.',
  )
}

/** @throws {ChangeError} the service has a change that is said to be absent */
async function refuseFound(deps: LookupDeps, row: LedgerRow): Promise<void> {
  if (deps.kind.findUnderKey === undefined) return
  const found = await lookUp(deps, row)
  if (found.result !== 'done') return
  const ids = [found.id, ...(found.otherIds ?? [])].join(' and ')
  const text = `Row ${row.row} of ${row.run} is not absent: the service has it as ${ids}. Resolve it as existing.`
  throw new ChangeError('NotAbsentError', text)
}

/** Sent now, an update would undo a later one, also one that is done. @throws {ChangeError} */
async function refuseOvertaken(
  { ledger, kind }: Pick<LookupDeps, 'kind'> & Pick<Resolution, 'ledger'>,
  { id, row, run, key, workspace, mode }: LedgerRow,
): Promise<void> {
  if (typeof kind.repeats !== 'function') return
  const later = (await ledger.holders({ workspace, mode, kind: kind.name, keys: [key] })).at(-1)
  if (later === undefined || later.id === id) return
  const text = `Row ${row} of ${run} cannot be sent again: row ${later.row} of ${later.run} is a later update of its record. Import the row again instead.`
  throw new ChangeError('LaterUpdateError', text)
}

function notInDoubt({ run, row, error }: LedgerRow): ChangeError {
  const fix = `Fix it in the service instead${error === null ? '' : `: ${error}`}.`
  const text = `Row ${row} of ${run} cannot be resolved: only what was sent and lost its reply is in doubt. ${fix}`
  return new ChangeError('NotInDoubtError', text)
}

function notParked({ run, row }: Resolution, state: ChangeState | undefined): ChangeError {
  const text =
    state === undefined
      ? `${run} has no row ${row}. Its report lists the rows that need a person.`
      : state === 'parked'
        ? `row ${row} of ${run} has changed since this decision was made. Look at it again before you decide.`
        : `row ${row} of ${run} is ${state}, not parked; there is nothing to resolve.`
  return new ChangeError('NotParkedError', text)
}

function endOf(decision: Decision) {
  if ('exists' in decision)
    return { to: 'done', outcome: 'resolved', patch: { answerId: decision.exists, holdsKey: 1 } } as const
  if ('absent' in decision)
    return {
      to: 'staged',
      outcome: 'absent',
      patch: { holdsKey: 1, notBefore: 0, answerId: null },
    } as const
  return { to: 'dropped', outcome: 'dropped', patch: { answerId: null } } as const
}

/** Whether the service itself shows the record that a person names. */
export type Confirmation = { confirmed: true } | { confirmed: false; reason: string }

/**
 * Checks the id that a person gives for a parked change: the record that the change is about and, if the service can be
 * asked, the service.
 * @throws {ChangeError} it cannot be that of the record
 */
async function confirmId(
  { billing, signal }: Resolution,
  { kind, row, id }: { kind: ChangeKind; row: LedgerRow; id: string },
): Promise<Confirmation> {
  const wrong = (reason: string) =>
    new ChangeError('WrongIdError', `Row ${row.row} cannot exist as ${id}: ${reason}. Nothing was changed.`)
  const body = parseBody(row)
  const target = targetOf(body).id
  if (target !== '' && target !== id) throw wrong(`the row is about ${target}`)
  if (target !== '') return { confirmed: false, reason: 'the service does not show who changed a record' }
  if (kind.findUnderKey === undefined)
    return { confirmed: false, reason: 'the service has no list of these records' }
  try {
    const { records, honoured } = await kind.findUnderKey({ billing, body, signal })
    const ids = records.map((record) => textOf(record['id']))
    if (ids.includes(id)) return { confirmed: true }
    if (!honoured)
      return { confirmed: false, reason: 'the lookup showed other records, or fewer than it counts' }
    if (ids.length === 0 && (await kind.findListed?.({ billing, signal }))?.found !== true)
      return { confirmed: false, reason: 'the lookup does not find a record that the list shows, either' }
    throw wrong(`the service has ${ids.join(', ') || 'no record'} under the key of this row`)
  } catch (error) {
    if (error instanceof ChangeError || signal?.aborted === true || !(error instanceof Error)) throw error
    return { confirmed: false, reason: outwardMessage(error) }
  }
}
