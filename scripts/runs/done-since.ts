import { join } from 'node:path'
import type { Client } from '@temporalio/client'
import { parseBody } from '../../core/changes/body.ts'
import { isDone, type Outcome } from '../../core/changes/outcomes.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import { runFiles } from '../../core/imports/input.ts'
import { shouldBeStaged } from '../../core/imports/report.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import type { FullReport as FullImportReport } from '../../core/imports/view.ts'
import { runOfUse } from '../../core/runs/name.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { NoStateError, StateUnreadableError } from '../../core/state/errors.ts'
import type { KeySpace } from '../../core/state/ledger/queries.ts'
import type { LedgerRow } from '../../core/state/ledger/row.ts'
import { openState, type State } from '../../core/state/open.ts'
import { readJson } from '../../core/storage/durable.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { importFolder } from './run-files.ts'

/** A run that has ended, as Temporal lists it. */
export interface EndedRun {
  /** Its workflow id. */
  run: string
  /** The id of this execution. */
  runId: string
  type: string
  verdict: string | null
  startTime: Date
  /** The schedule that started it. */
  schedule: string | undefined
}

/**
 * Tells whether what needed a person in an ended run has been done since. Temporal cannot change the search attributes
 * of such a run, so its later runs are asked: one of the same command or schedule that needs nobody. The ledger knows
 * whether other imports have done the rows of an import. What neither shows counts as not done.
 */
export function createJudge(of: {
  client: Pick<Client, 'workflow'>
  settings: Pick<Settings, 'state' | 'dataDir'>
  terminal: Pick<Terminal, 'note'>
}): { isDoneSince: (run: EndedRun) => Promise<boolean> } & AsyncDisposable {
  const { client, settings, terminal } = of
  let state: Promise<State | undefined> | undefined
  let hasFailed = false
  return {
    async isDoneSince(ended) {
      if ((await client.workflow.count(laterQuery(ended))).count > 0) return true
      if (ended.type !== 'importFile' || hasFailed) return false
      try {
        const opened = await (state ??= openLedger(settings))
        return opened !== undefined && (await isDoneInAllUses({ ...settings, state: opened }, ended))
      } catch (error) {
        hasFailed = true
        terminal.note(`Runs may be listed that need no person any more: ${(error as Error).message}`)
        return false
      }
    },
    [Symbol.asyncDispose]: async () => (await state?.catch(() => undefined))?.close(),
  }
}

/** Later runs of the same command or schedule that answer for a run. */
function laterQuery({ run, runId, type, startTime, schedule }: EndedRun): string {
  const same = `WorkflowId = '${run}'`
  return [
    schedule === undefined ? same : `(${same} OR TemporalScheduledById = '${schedule}')`,
    `WorkflowType = '${type}'`,
    `RunId != '${runId}'`,
    `StartTime >= '${startTime.toISOString()}'`,
    "Verdict = 'proven'",
    // A proven recovery reports again what still needs a person.
    ...(type === 'recoverSubscriptions' ? [] : ['NeedsPerson = false']),
  ].join(' AND ')
}

/** Undefined on a machine without a state, which knows nothing. */
async function openLedger(settings: Pick<Settings, 'state'>): Promise<State | undefined> {
  return await openState({ ...settings.state, readOnly: true }).catch((error: unknown) => {
    if (error instanceof StateUnreadableError || error instanceof NoStateError) return undefined
    throw error
  })
}

interface Records {
  dataDir: string
  state: State
}

/** Several runs may have had the workflow id, and it is not known here which of them this one is. */
async function isDoneInAllUses(records: Records, ended: EndedRun): Promise<boolean> {
  for (let use = 1; ; use += 1) {
    const isDoneSince = await isImported(records, { ...ended, run: runOfUse(ended.run, use) })
    if (isDoneSince !== true) return isDoneSince === undefined && use > 1
  }
}

/** Undefined if the data folder has no such import. */
async function isImported(records: Records, { run, verdict }: EndedRun): Promise<boolean | undefined> {
  const { state } = records
  const { plan, staged } = await createRunNotes(state).read<ImportNotes>(run)
  if (plan?.job !== 'import') return undefined
  const { identity, does } = plan
  if (identity.store !== state.storeId) return false
  const rows = await readRows({ state, run })
  if (rows === undefined || staged === undefined || rows.all < shouldBeStaged({ plan, staged })) return false
  if (rows.inDoubt > 0 || rows.parked.length > 0) return false
  const kind = importKinds[plan.kind].change.name
  const space = { workspace: identity.workspace, mode: identity.mode, kind }
  // An update does what an earlier one was to do only if it has the same fields; those of an invalid row are not known.
  const answers = (row: LedgerRow, later: LedgerRow) =>
    does !== 'update' || (row.outcome !== 'invalid' && fieldsOf(row).isSubsetOf(fieldsOf(later)))
  // What made it unproven besides its rows is not known here.
  const isSettled = verdict === 'proven' || rows.done.size === 0
  if (isSettled && (await areDoneLater({ state, space, rows: rows.left, answers }))) return true
  return await isInCorrectedSheet({ ...records, run, space, rows })
}

const fieldsOf = (row: LedgerRow) => new Set(Object.keys(parseBody(row)))

/**
 * Whether a later import has proven the same sheet: it has every row that this run has done in the same place, and has done
 * every row that this run has not. So a corrected row is known that has another key.
 */
async function isInCorrectedSheet(
  of: Records & { run: string; space: KeySpace; rows: Rows },
): Promise<boolean> {
  const { dataDir, state, run, space, rows } = of
  const [key] = rows.done.values()
  if (key === undefined) return false
  const under = await state.ledger.underKeys({ ...space, keys: [key] })
  const own = Math.max(...under.filter((row) => row.run === run).map(({ id }) => id))
  const later = new Set(under.flatMap((row) => (row.run !== run && row.id > own ? [row.run] : [])))
  for (const other of later) {
    const path = join(importFolder({ dataDir, run: other }), runFiles.report)
    const report = await readJson<FullImportReport>(path)
    if (report?.verdict !== 'proven' || report.identity.store !== state.storeId) continue
    const sheet = await readRows({ state, run: other })
    if (sheet === undefined || sheet.left.length + sheet.parked.length + sheet.inDoubt > 0) continue
    const isSame = [...rows.done].every(([row, done]) => sheet.done.get(row) === done)
    if (isSame && rows.left.every(({ row }) => sheet.done.has(row))) return true
  }
  return false
}

/** The changes of a run, by what is left to do. */
interface Rows {
  /** The keys of those that are done, by row. */
  done: Map<number, string>
  /** Rejected, or left to another run. */
  left: LedgerRow[]
  parked: LedgerRow[]
  /** How many may have been sent, or are done otherwise than they were sent. */
  inDoubt: number
  all: number
}

/** Outcomes of rows that are not to be sent. */
const closed: readonly (string | null)[] = [
  'dropped',
  'existed',
  'nothingGiven',
  'gone',
  'coolingDown',
] satisfies Outcome[]

/** Outcomes of rows that the service has, but not as they were sent. */
const wrong: readonly (string | null)[] = ['doubled', 'storedDifferently', 'wrongMode'] satisfies Outcome[]

/** Undefined if the run staged nothing: nobody knows which changes it was about. */
async function readRows({ state, run }: { state: State; run: string }): Promise<Rows | undefined> {
  const rows: Rows = { done: new Map(), left: [], parked: [], inDoubt: 0, all: 0 }
  for await (const row of state.ledger.rows({ run })) {
    rows.all += 1
    if (wrong.includes(row.outcome)) rows.inDoubt += 1
    else if (isDone(row)) rows.done.set(row.row, row.key)
    else if (row.state === 'parked') rows.parked.push(row)
    else if (row.state === 'rejected') rows.left.push(row)
    else if (row.state !== 'dropped') rows.inDoubt += 1
    else if (!closed.includes(row.outcome)) rows.left.push(row)
  }
  return rows.all === 0 ? undefined : rows
}

const keysAtOnce = 500

/** Whether another run has done each of these changes after they were staged. */
async function areDoneLater(of: {
  state: State
  space: KeySpace
  rows: readonly LedgerRow[]
  /** Whether a later change under the same key does what the row was to do. */
  answers: (row: LedgerRow, later: LedgerRow) => boolean
}): Promise<boolean> {
  const { state, space, rows, answers } = of
  for (let from = 0; from < rows.length; from += keysAtOnce) {
    const batch = rows.slice(from, from + keysAtOnce)
    const keys = [...new Set(batch.map(({ key }) => key))]
    const byKey = Map.groupBy(await state.ledger.underKeys({ ...space, keys }), ({ key }) => key)
    const isDoneLater = (row: LedgerRow) => {
      const under = byKey.get(row.key) ?? []
      // Of two rows with one key, nobody knows which one was done.
      if (under.filter(({ run }) => run === row.run).length > 1) return false
      return under.some(
        (other) =>
          other.id > row.id && isDone(other) && !wrong.includes(other.outcome) && answers(row, other),
      )
    }
    if (!batch.every(isDoneLater)) return false
  }
  return true
}
