import type { Insertable } from 'kysely'
import { KeyHeldError, StateError, unstorableRow } from '../errors.ts'
import { type Holder, type KeySpace, createQueries } from './queries.ts'
import type { LedgerRow } from './row.ts'
import { type Store, isConflict, retryConflicts } from '../store.ts'
import type { ChangeTable } from '../schema.ts'

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
  /** It is staged again, and may have been sent so often, and last then: it is unknown. */
  restored?: { sends: number; unknownSince: number; sentAt: number | null } | undefined
  /** Requested by a person: stage it although an earlier run has done it. */
  sendAgain?: boolean
}

/**
 * When a key that is done may be staged again without a person's request: a function says so of the body that was done and of
 * the other one.
 */
export type Repeats = 'never' | 'always' | ((done: string, other: string) => boolean)

export interface StageResult {
  /** How many are new, those closed from the start included. */
  staged: number
  /** Not staged: another change holds the key. */
  held: { row: number; key: string; by: LedgerRow }[]
}

interface StageOptions extends KeySpace {
  run: string
  repeats: Repeats
  changes: readonly NewChange[]
}

/** Each row has 20 columns, and SQLite allows 32,766 parameters. */
const rowsAStatement = 500

/**
 * Stages changes of a run, all in one durable write; a few thousand at a time keep memory flat. Staging the same changes
 * again changes nothing, except that one that was never claimed is closed if it is to be by now. Another run may stage a
 * key between the look at its holders and the insert: the unique index refuses it, and the next try sees the holder.
 *
 * @throws {StateError} the run already has a row with other contents, or a key or body contains the character NUL
 */
export const createStage =
  ({ db, isIn }: Pick<Store, 'db' | 'isIn'>) =>
  (options: StageOptions): Promise<StageResult> =>
    retryConflicts(
      () => db.transaction().execute((transaction) => stage(options, { db: transaction, isIn })),
      (error) => isConflict(error) || error instanceof KeyHeldError,
    )

async function stage(
  { run, repeats, changes, ...space }: StageOptions,
  { db, isIn }: Pick<Store, 'db' | 'isIn'>,
): Promise<StageResult> {
  const numbers = changes.map(({ row }) => row)
  const rows = await db
    .selectFrom('changes')
    .selectAll()
    .where('run', '=', run)
    .where(isIn('row', numbers))
    .execute()
  const present = new Map(rows.map((row) => [row.row, row]))
  const fresh: NewChange[] = []
  for (const change of changes) {
    // PostgreSQL cannot store the character NUL, and a changed key or body would be another change.
    if (`${change.key}${change.body}`.includes('\0')) throw unstorableRow({ run, row: change.row })
    const before = present.get(change.row)
    if (before === undefined) fresh.push(change)
    else if (before.kind === space.kind && before.key === change.key && before.body === change.body)
      await restage({ db, before, change })
    else
      throw new StateError(
        'RunTakenError',
        `The run ${run} already has a row ${change.row} with other contents. Start the new contents under another name.`,
      )
  }
  const keys = fresh.flatMap(({ closed, key }) => (closed === undefined ? [key] : []))
  const holders = await createQueries({ db, isIn }).holders({ ...space, keys })
  const byKey = new Map(holders.map((holder) => [holder.key, holder]))
  const held: StageResult['held'] = []
  const values: Insertable<ChangeTable>[] = []
  for (const change of fresh) {
    const { row, key, closed } = change
    const by = closed === undefined ? byKey.get(key) : undefined
    if (by !== undefined && !mayRepeat({ by, change, repeats })) held.push({ row, key, by })
    else
      values.push({
        run,
        ...space,
        ...toInsert(change),
        generation: by === undefined ? 0 : by.generation + 1,
      })
  }
  // In one order, so that two runs that stage the same keys never wait for each other.
  values.sort((one, other) => (one.key < other.key ? -1 : 1))
  for (let from = 0; from < values.length; from += rowsAStatement)
    await db
      .insertInto('changes')
      .values(values.slice(from, from + rowsAStatement))
      .execute()
  return { staged: values.length, held }
}

/**
 * An attempt to stage the run was lost, and the next one may know more. What the first one saw stays: it may have been given
 * up, and be the one that stages last. What was claimed, or decided by a person, stays as it is.
 */
async function restage({
  db,
  before: row,
  change,
}: {
  db: Store['db']
  before: LedgerRow
  change: NewChange
}) {
  const { before, ...others } = facts(change)
  const isNew = change.closed !== undefined || (before ?? row.before) !== row.before
  if (!isNew || row.state !== 'staged' || row.claims > 0 || row.resolvedBy !== null) return
  await db
    .updateTable('changes')
    .set({ ...others, ...(before !== null && { before }) })
    .where('id', '=', row.id)
    .where('state', '=', 'staged')
    .where('claims', '=', 0)
    .execute()
}

/**
 * Whether a change may be staged although another one holds its key. A later change that was dropped may have given the
 * record other values than the one that is done.
 */
export function mayRepeat({
  by,
  change,
  repeats,
}: {
  by: Holder
  change: Pick<NewChange, 'sendAgain' | 'body'>
  repeats: Repeats
}): boolean {
  if (by.state !== 'done') return false
  if (change.sendAgain === true || repeats === 'always') return true
  if (repeats === 'never') return false
  return (by.droppedSince ?? 0) > 0 || repeats(by.body, change.body)
}

const toInsert = (change: NewChange) => ({
  row: change.row,
  key: change.key,
  breakerKey: change.breakerKey ?? '',
  phase: 1,
  body: change.body,
  claims: 0,
  sends: 0,
  ...facts(change),
  ...(change.closed === undefined &&
    change.restored && { state: 'unknown' as const, outcome: 'restored', ...change.restored }),
  attemptsBefore: change.attemptsBefore ?? 0,
  notBefore: change.notBefore ?? 0,
  lookups: 0,
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
