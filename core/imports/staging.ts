import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { newestCreated, newestPage } from '../changes/audit-retentions.ts'
import { asksForOther, parseBody } from '../changes/body.ts'
import type { ChangeKind } from '../changes/change-kind.ts'
import { differencesOf } from '../changes/compare-fields.ts'
import { idsKnownTo } from '../changes/kinds/create-retention.ts'
import type { Outcome } from '../changes/outcomes.ts'
import { takeOver } from '../changes/close.ts'
import {
  type ChangesFile,
  createChangesFile,
  type Decided,
  shareChanges,
  stageKeptChanges,
  writeCheckpoint,
} from '../changes/staged-changes.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import { formatCountOf } from '../runs/view/format.ts'
import { takeLease } from '../runs/lease.ts'
import type { LeaseOwner } from '../state/leases.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { mayRepeat, type NewChange } from '../state/ledger/stage.ts'
import type { State } from '../state/open.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { replaceFile } from '../storage/durable.ts'
import { checkFile, closedBy, type FileCheck } from './check.ts'
import { few, InvalidFile, quote, RowsTaken, say } from './errors.ts'
import { type Existing, findExisting } from './existing-in-service.ts'
import { type ImportPlan, leaseOf, runFiles } from './input.ts'
import { importKinds } from './kinds.ts'
import { toOutwardSentence, toSentence } from './problems.ts'
import { fileOf, type ImportNotes, type StagedNote } from './run-files.ts'
import { refuseDamaged } from './stored-input.ts'

interface StageOptions {
  deps: {
    state: Pick<State, 'ledger' | 'leases'>
    dataDir: string
    owner: LeaseOwner
    /** Whether another run has ended, from the point of view of this one. */
    isClosed: (owner: LeaseOwner) => Promise<boolean>
    /** How long a record may stay invisible after its `created`. */
    readLagMs: number
    notes: RunNotes
    shared: SharedFolder
    /** When Temporal scheduled this attempt. */
    attempt: number
  }
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
}

/**
 * Checks a run's whole file and stages its changes, or rejects all of them. A run that was already staged
 * stays unchanged. A dry run stages nothing.
 *
 * @throws {InvalidFile}
 * @throws {RowsTaken} another run has some of its rows, or the service does
 */
export async function stageRun(
  options: StageOptions & { onPhase: (phase: string) => void },
): Promise<StagedNote> {
  const { deps, plan, billing, signal, onPhase } = options
  const { run, dryRun } = plan
  const { dataDir, notes, shared } = deps
  const { ledger } = deps.state
  onPhase('checking the file')
  const { staged } = await notes.read<ImportNotes>(run)
  if (staged !== undefined && !dryRun) return staged
  await refuseDamaged({ dataDir, ...plan })
  const kind = importKinds[plan.kind].change.name
  // Of each attempt its own: one that was given up and wakes changes nothing of a later one.
  const folder = join(dataDir, plan.folder, 'staged', String(deps.attempt))
  await using changes = await createChangesFile(folder, { ...plan.identity, run, kind })
  const { expectRows, expectTotals, sendAgain } = plan
  const file = await fileOf({ plan, dataDir })
  const check = await checkFile({ ...file, expectRows, expectTotals, sendAgain, changes })
  const checkJson = join(dataDir, plan.folder, runFiles.check)
  await replaceFile(checkJson, JSON.stringify(check, null, 2))
  await shared.keep(checkJson)
  await notes.write(run, { check })
  if (dryRun && check.stopped) return noteOf(check)
  refuseInvalid(check, dryRun ? 'skip' : plan.onInvalid)
  onPhase('looking for rows of earlier runs')
  const matches = await matchLedger(ledger, plan, check, changes)
  refuseMissing(plan, matches, check)
  await keepActiveRuns(deps, matches)
  onPhase('looking for rows that the service already has')
  // Before the search: of what is created meanwhile, the audit finds what the search does not.
  const newest = plan.listed ? await newestPage({ billing, signal }) : undefined
  if (newest !== undefined) {
    const { readLagMs } = deps
    const testMode = plan.identity.mode === 'test'
    const lookups = new Set(matches.lookups.keys())
    addExisting(plan, matches, await findExisting({ billing, lookups, newest, testMode, readLagMs, signal }))
  }
  refuseTaken(plan, matches)
  refuseUnseen(plan, matches)
  const counts = noteOf(check, matches)
  if (dryRun) {
    const existed = plan.existing === 'skip' ? matches.existing.length : 0
    await notes.write(run, { skipped: matches.doneEarlier + existed })
    return counts
  }
  onPhase('staging')
  await takeOverRows(deps, plan, matches)
  const rows = await changes.keep(matches.decided)
  await shareChanges(shared, folder)
  await stageKeptChanges({
    ledger,
    folder,
    signal,
    onHeld: async ([first]) => {
      // Another run took the row after `matchLedger`.
      throw new RowsTaken(`The run ${first?.by.run} has just taken row ${first?.row}. Let it end first.`)
    },
  })
  const newestBefore = newest && newestCreated(newest)
  const note = { ...counts, staged: rows, ...(newestBefore !== undefined && { newestBefore }) }
  await writeCheckpoint(shared, { folder, run, staged: rows, notes: { plan, check, staged: note } })
  await notes.write(run, { staged: note })
  return note
}

/** The counts of a checked file, before any of it is staged. */
const noteOf = (check: FileCheck, matches?: Matches): StagedNote => ({
  staged: 0,
  invalid: check.invalid,
  doubtfulEarlier: matches?.doubtfulEarlier ?? 0,
  resolvedEarlier: matches?.resolvedEarlier ?? 0,
  totals: check.totals,
  existingReasons: matches?.reasons ?? [],
})

/** What the ledger and the service have of the changes of a file, and what follows for its rows. */
interface Matches {
  /** Changes without a problem. */
  valid: number
  /** The rows of changes that the service may already have, by their keys. */
  lookups: Map<string, number>
  /** Ids of these in the service that are those of earlier runs, or that were accepted there. */
  known: Set<string>
  /** Rows whose keys another run holds, by that run. */
  held: Map<string, HeldRows>
  /** The number of rows that an earlier run did, and of those of them that are in doubt. */
  doneEarlier: number
  doubtfulEarlier: number
  /** The number of rows on which people have decided in earlier runs, so that no answer proves them. */
  resolvedEarlier: number
  /** For each change that the service already has, its ids there. */
  existing: (readonly string[])[]
  /** Why some of these may have been missed. */
  reasons: readonly string[]
  /** What only the whole file, the ledger and the service decide on its rows. */
  decided: Map<number, Decided>
}

interface HeldRows {
  /** How many of them the run has done, and which of these with other values. */
  done: number
  otherwise: number[]
  /** Changes the run has not sent. */
  unsent: { row: number; change: Pick<LedgerRow, 'id' | 'claims'> }[]
  /** All others: in flight, unknown or parked. */
  active: number[]
}

/** Looks up each change of a file in the ledger, before staging any. */
async function matchLedger(
  ledger: Ledger,
  plan: ImportPlan,
  check: FileCheck,
  changes: ChangesFile,
): Promise<Matches> {
  const { workspace, mode } = plan.identity
  const { change: kind, schema } = importKinds[plan.kind]
  const { repeats } = kind
  const space = { workspace, mode, kind: kind.name }
  const matches: Matches = {
    valid: 0,
    lookups: new Map(),
    known: new Set(),
    held: new Map(),
    doneEarlier: 0,
    doubtfulEarlier: 0,
    resolvedEarlier: 0,
    existing: [],
    reasons: [],
    decided: new Map(),
  }
  const addHeld = (holder: LedgerRow, { row, body }: NewChange) => {
    const { run, id, claims, answerId, outcome } = holder
    const rows = matches.held.get(run) ?? { done: 0, otherwise: [], unsent: [], active: [] }
    matches.held.set(run, rows)
    if (holder.state === 'staged') rows.unsent.push({ row, change: { id, claims } })
    else if (holder.state !== 'done') rows.active.push(row)
    if (holder.state !== 'done') return
    rows.done += 1
    matches.doneEarlier += 1
    if (doubtful.includes(outcome)) matches.doubtfulEarlier += 1
    // Of the other kinds, what has the key asks for the same, in whatever writing.
    const others =
      kind.lookUp === undefined
        ? []
        : differencesOf({ schema, sent: parseBody({ body }), stored: parseBody(holder) })
    const differences = others.map(({ field, sent, stored }) => `${field} was ${stored} and is ${sent} here`)
    const isSame = differences.length === 0
    if (!isSame) rows.otherwise.push(row)
    const error = `the run ${run} did it${isSame ? '' : `: ${differences.join('; ')}`}`
    const closed = {
      state: 'dropped',
      outcome: isSame ? 'doneEarlier' : 'doneOtherwise',
      error,
      answerId,
    } as const
    matches.decided.set(row, { closed })
  }
  for await (const batch of changes.batches()) {
    const open: NewChange[] = []
    for (const change of batch) {
      const closed = closedBy(check, change)
      if (closed === undefined) open.push(change)
      else if (closed !== change.closed) matches.decided.set(change.row, { closed })
    }
    matches.valid += open.length
    const keys = open.map(({ key }) => key)
    const holders = await ledger.holders({ ...space, keys })
    const byKey = Map.groupBy(holders, ({ key }) => key)
    // Only the audit of retentions shows that a row was not done twice, too.
    const decided =
      kind.lookUp === undefined ? await ledger.decidedByPeople({ ...space, run: plan.run, keys }) : []
    const decidedByKey = Map.groupBy(decided, ({ key }) => key)
    for (const change of open) {
      const rows = byKey.get(change.key) ?? []
      const holder = rows.at(-1)
      const isHeld =
        holder !== undefined && holder.run !== plan.run && !mayRepeat({ by: holder, change, repeats })
      if (isHeld) addHeld(holder, change)
      const isResolved =
        isHeld &&
        holder.state === 'done' &&
        (kind.lookUp === undefined ? holder.resolvedBy !== null : holder.outcome === 'resolved')
      const mayBeDone = decidedByKey.get(change.key)?.some((by) => addsTo(kind, by, change)) === true
      if (isResolved || mayBeDone) matches.resolvedEarlier += 1
      // Also what is sent again, and what a lost attempt of this run has staged: somebody may have created it since.
      if (holder === undefined || holder.state === 'staged' || !(isHeld || holder.run === plan.run)) {
        matches.lookups.set(change.key, change.row)
        for (const id of idsKnownTo(rows.filter(({ run }) => run !== plan.run))) matches.known.add(id)
      }
    }
  }
  return matches
}

/** Whether a change does once more what an earlier request for it may have done. */
const addsTo = (kind: ChangeKind, by: LedgerRow, { body }: NewChange): boolean =>
  (kind.repeats === 'never' || !asksForOther(by.body, body)) &&
  kind.whenUnknown(parseBody({ body })) === 'park'

/** Outcomes of rows that are done, but that make their run unproven, and on which nobody has decided. */
const doubtful: readonly (string | null)[] = ['doubled', 'storedDifferently', 'wrongMode'] satisfies Outcome[]

/** Adds what the service has of the file, except for records that the ledger knows. */
function addExisting(plan: ImportPlan, matches: Matches, { ids: found, reasons }: Existing): void {
  matches.reasons = reasons
  for (const [key, row] of matches.lookups) {
    const ids = found.get(key)?.filter((id) => !matches.known.has(id)) ?? []
    if (ids.length === 0) continue
    matches.existing.push(ids)
    const error = `it already exists in the service, as ${ids.join(', ')}`
    matches.decided.set(row, {
      before: JSON.stringify({ ids }),
      ...(plan.existing === 'skip' && { closed: { state: 'dropped', outcome: 'existed', error } }),
    })
  }
}

/**
 * Unsent rows of an active run stay with it. Those of an ended run may be sent by another one: this is how a
 * fixed file replaces one that was stopped.
 */
async function keepActiveRuns(
  { state: { leases }, owner, isClosed }: StageOptions['deps'],
  { held }: Matches,
): Promise<void> {
  for (const [run, rows] of held) {
    if (rows.unsent.length === 0) continue
    const lease = { name: leaseOf(run), owner }
    const { taken } = await leases.take({ ...lease, isClosed })
    if (taken) {
      await leases.release(lease)
      continue
    }
    rows.active.push(...rows.unsent.map(({ row }) => row))
    rows.unsent = []
  }
}

/** Takes over other runs' unsent rows. The lease keeps such a run from starting again meanwhile. */
async function takeOverRows(
  { state: { ledger, leases }, owner, isClosed }: StageOptions['deps'],
  plan: ImportPlan,
  { held }: Matches,
): Promise<void> {
  for (const [run, { unsent }] of held) {
    if (unsent.length === 0) continue
    await takeLease({ leases, name: leaseOf(run), owner, isClosed })
    await takeOver({ ledger, rows: unsent.map(({ change }) => change), by: plan.run })
    await leases.release({ name: leaseOf(run), owner })
  }
}

/** Rejects a file with a problem that concerns all of it or, with `stop`, with any. @throws {InvalidFile} */
export function refuseInvalid(check: FileCheck, onInvalid: 'stop' | 'skip'): void {
  const [first] = check.problems
  if (first === undefined || (!check.stopped && onInvalid === 'skip')) return
  const outward = `${toOutwardSentence(first)}. The values are in check.json in the run's folder.`
  throw new InvalidFile(
    say`${check.file} has ${formatCountOf(check.problemCount, 'problems')}, so nothing was sent: ${quote(toSentence(first), outward)}`,
  )
}

/** Rejects rows to send again that are not in the file. @throws {InvalidFile} */
function refuseMissing({ sendAgain, kind }: ImportPlan, { valid }: Matches, check: FileCheck): void {
  if (sendAgain.length === 0 || valid === sendAgain.length) return
  throw new InvalidFile(
    `sendAgain=${sendAgain.join(',')}: only ${valid} of these ${sendAgain.length} rows begin a valid ${importKinds[kind].one} in ${check.file}. Name the first row of each.`,
  )
}

/**
 * Rejects rows that another run or the service already has, unless the plan allows them. @throws {RowsTaken}
 */
function refuseTaken(plan: ImportPlan, matches: Matches): void {
  const all = matches.valid.toLocaleString('en')
  const left = (matches.valid - matches.doneEarlier).toLocaleString('en')
  for (const [run, { done, otherwise, active }] of matches.held) {
    if (active.length > 0)
      throw new RowsTaken(
        `${active.length.toLocaleString('en')} of ${all} rows belong to the run ${run}, which has not finished with them (rows ${few(active)}). First let it end, with its own command if it was stopped, or resolve the rows it has parked.`,
      )
    if (done > 0 && plan.done === 'refuse')
      throw new RowsTaken(
        `${done.toLocaleString('en')} of ${all} rows were done by the run ${run}${otherwise.length === 0 ? '' : ` (with other values in ${otherwise.length === 1 ? 'row' : 'rows'} ${few(otherwise)})`}. ${left === '0' ? `All ${all} are done; none is left to send.` : `To send the other ${left}, add --done skip.`}`,
      )
  }
  const { existing } = matches
  if (existing.length === 0 || plan.existing !== 'refuse') return
  throw new RowsTaken(
    `${existing.length.toLocaleString('en')} of ${all} rows already exist in the service (as ${few(existing.flat())}). To skip them, add --existing skip; to create all rows anyway, --existing create.`,
  )
}

/** Rejects a file if it is not known which of its rows the service has. @throws {RowsTaken} */
function refuseUnseen(plan: ImportPlan, { reasons: [reason] }: Matches): void {
  if (reason === undefined || plan.existing === 'create') return
  throw new RowsTaken(
    `It is not known which rows the service already has, so nothing was sent: its list could not be read completely (${reason}), and its filters do not find what the list shows. Import the file again later. To create all rows anyway, add --existing create.`,
  )
}
