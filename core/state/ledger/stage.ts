import type { Insertable, Selectable } from 'kysely'
import { StateError, unstorableRow } from '../errors.ts'
import { type KeySpace, createQueries } from './queries.ts'
import type { LedgerRow } from './row.ts'
import type { Store } from '../store.ts'
import type { ChangeTable } from '../schema.ts'
import { transact } from '../store.ts'

export interface NewChange {
  row: number
  key: string
  /** JSON text exactly as it will be sent. */
  body: string
  breakerKey?: string
  notBefore?: number
  /** Attempts of earlier runs that count here, too. */
  attemptsBefore?: number
  /** Facts from before, as JSON text of the change kind. */
  before?: string
  /** For a change that is closed from the start: invalid, left out on purpose, or parked. */
  closed?: {
    state: 'rejected' | 'dropped' | 'parked'
    outcome: string
    error: string
    answerId?: string | null
  }
  /** It is staged again, and may have been sent so often: it is unknown. */
  restored?: { sends: number; unknownSince: number } | undefined
  /** Requested by a person: stage it although an earlier run has done it. */
  sendAgain?: boolean
}

/** When a key that is done may be staged again without a person's request. */
export type Repeats = 'never' | 'otherBody' | 'always'

export interface StageResult {
  /** Newly staged, or closed from the start. */
  staged: number
  /** Already staged by this run, which resumes. */
  already: number
  /** Not staged: another change holds the key. */
  held: { row: number; key: string; by: LedgerRow }[]
}

/**
 * Stages changes of a run, all in one durable write; a few thousand at a time keep memory flat. Staging the same changes
 * again changes nothing, except that one that was never claimed is closed if it is to be by now.
 * @throws {StateError} the run already has a row with other contents, or a key or body contains the character NUL
 */
export type Stage = (
  options: KeySpace & { run: string; repeats: Repeats; changes: readonly NewChange[] },
) => Promise<StageResult>

/** Each row has 20 columns, and SQLite allows 32,766 parameters. */
const rowsAStatement = 500

/**
 * Another run may stage a key between the look at its holders and the insert: the unique index refuses it, and the next
 * try sees the holder.
 */
export function createStage(store: Store): Stage {
  return (options) =>
    transact(store.db, (db) => stage({ ...options, db, isIn: store.isIn }), { retryHeldKeys: true })
}

async function stage({
  db,
  isIn,
  run,
  repeats,
  changes,
  ...space
}: Parameters<Stage>[0] & Pick<Store, 'db' | 'isIn'>): Promise<StageResult> {
  for (const change of changes) refuseNul({ run, change })
  const stagedRows = await rowsOfRun({ db, isIn, run, changes })
  const fresh: NewChange[] = []
  for (const change of changes) {
    const before = stagedRows.get(change.row)
    if (before === undefined) {
      fresh.push(change)
      continue
    }
    if (before.kind !== space.kind || before.key !== change.key || before.body !== change.body)
      throw new StateError(
        'RunTakenError',
        `The run ${run} already has a row ${change.row} with other contents. Start the new contents under another name.`,
      )
    const isNew = change.closed !== undefined || (change.before ?? before.before) !== before.before
    if (isNew && isUntouched(before)) await restage({ db, id: before.id, change })
  }
  const keys = fresh.filter((change) => change.closed === undefined).map(({ key }) => key)
  const holders = new Map<string, LedgerRow>()
  for (const row of await createQueries({ db, isIn }).holders({ ...space, keys })) holders.set(row.key, row)

  const result: StageResult = { staged: 0, already: changes.length - fresh.length, held: [] }
  const values: Insertable<ChangeTable>[] = []
  for (const change of fresh) {
    const by = change.closed === undefined ? holders.get(change.key) : undefined
    if (by !== undefined && !mayRepeat({ by, change, repeats })) {
      result.held.push({ row: change.row, key: change.key, by })
      continue
    }
    values.push(toInsert({ run, space, change, generation: by === undefined ? 0 : by.generation + 1 }))
  }
  // In one order, so that two runs that stage the same keys never wait for each other.
  values.sort((one, other) => (one.key < other.key ? -1 : 1))
  for (let from = 0; from < values.length; from += rowsAStatement)
    await db
      .insertInto('changes')
      .values(values.slice(from, from + rowsAStatement))
      .execute()
  return { ...result, staged: values.length }
}

type StagedRow = Pick<
  Selectable<ChangeTable>,
  'id' | 'row' | 'kind' | 'key' | 'body' | 'state' | 'claims' | 'before' | 'resolvedBy'
>

/** Neither claimed nor decided by a person. */
const isUntouched = ({ state, claims, resolvedBy: by }: StagedRow) =>
  state === 'staged' && claims === 0 && by === null

/**
 * An attempt to stage the run was lost, and the next one knows more. What the first one saw stays: it may have been given
 * up, and be the one that stages last.
 */
async function restage({ db, id, change }: { db: Store['db']; id: number; change: NewChange }) {
  const { before, ...others } = facts(change)
  await db
    .updateTable('changes')
    .set({ ...others, ...(before !== null && { before }) })
    .where('id', '=', id)
    .where('state', '=', 'staged')
    .where('claims', '=', 0)
    .execute()
}

/** PostgreSQL cannot store the character NUL, and a changed key or body would be another change. */
function refuseNul({ run, change: { row, key, body } }: { run: string; change: NewChange }) {
  if (key.includes('\0') || body.includes('\0')) throw unstorableRow({ run, row })
}

async function rowsOfRun({
  db,
  isIn,
  run,
  changes,
}: Pick<Store, 'db' | 'isIn'> & { run: string; changes: readonly NewChange[] }) {
  const rows = await db
    .selectFrom('changes')
    .select(['id', 'row', 'kind', 'key', 'body', 'state', 'claims', 'before', 'resolvedBy'])
    .where('run', '=', run)
    .where(
      isIn(
        'row',
        changes.map(({ row }) => row),
      ),
    )
    .execute()
  return new Map(rows.map((row) => [row.row, row]))
}

/** Whether a change may be staged although another one holds its key. */
export function mayRepeat({
  by,
  change,
  repeats,
}: {
  by: LedgerRow
  change: Pick<NewChange, 'sendAgain' | 'body'>
  repeats: Repeats
}): boolean {
  if (by.state !== 'done') return false
  if (change.sendAgain === true || repeats === 'always') return true
  return repeats === 'otherBody' && by.body !== change.body
}

function toInsert({
  run,
  space,
  change,
  generation,
}: {
  run: string
  space: KeySpace
  change: NewChange
  generation: number
}): Insertable<ChangeTable> {
  return {
    run,
    row: change.row,
    ...space,
    key: change.key,
    generation,
    ...facts(change),
    breakerKey: change.breakerKey ?? '',
    phase: 1,
    body: change.body,
    claims: 0,
    sends: 0,
    ...(change.closed === undefined && change.restored && restoredFacts(change.restored)),
    attemptsBefore: change.attemptsBefore ?? 0,
    notBefore: change.notBefore ?? 0,
    lookups: 0,
  }
}

const restoredFacts = (restored: NonNullable<NewChange['restored']>) => ({
  state: 'unknown' as const,
  outcome: 'restored',
  ...restored,
})

/** What is known of a change when it is staged. */
const facts = ({ closed, before }: NewChange) => ({
  // A change that is only reported will never be sent, so it does not hold its key.
  holdsKey: closed === undefined ? 1 : 0,
  state: closed?.state ?? ('staged' as const),
  outcome: closed?.outcome ?? null,
  error: closed?.error ?? null,
  answerId: closed?.answerId ?? null,
  before: before ?? null,
})
