import type { ExpressionBuilder, Kysely } from 'kysely'
import { type Group, GroupCommit } from './group-commit.ts'
import { type KeyReads, createKeyReads } from './key-queries.ts'
import { type LedgerRow, type RowPatch, toColumns, toRow } from './row.ts'
import { type RunReads, createRunReads } from './run-queries.ts'
import { type BecomeSender, type FencingToken, becomeSender, holdSender } from './senders.ts'
import { type Stage, createStage } from './stage.ts'
import type { Store } from '../store.ts'
import type { ChangeState, StateTables } from '../tables.ts'

/**
 * The durable record of every change. It stores rows; core/changes/transitions.ts decides which transitions are allowed.
 * Every write is on disk when its promise resolves.
 */
export interface Ledger extends RunReads, KeyReads, Pick<Store, 'now' | 'isShared'> {
  stage: Stage
  /**
   * Claims a staged change: from then on it counts as possibly sent. Undefined if it is no longer staged or was sent since
   * the caller read it, so that of two claims of one change only one succeeds.
   * @throws {SupersededError} if another attempt became the run's sender
   * @throws {LockLostError} if this process no longer holds the data folder: the change must not be sent
   */
  claim(options: ClaimOptions): Promise<LedgerRow | undefined>
  /**
   * Gives the caller the right to claim changes of a run and takes it from the previous holder.
   * @throws {SupersededError} if the caller had the right and another attempt has taken it
   */
  becomeSender(options: BecomeSender): Promise<FencingToken>
  /**
   * Updates one change if it is still in one of the states `from` and, if `claims` is given, was not claimed again since.
   * Returns false if nothing was changed.
   * @throws {KeyHeldError} if another change has taken its key in the meantime
   */
  move(options: MoveOptions): Promise<boolean>
  /** Updates the first `limit` changes of a run that are in `from`; returns their number. */
  moveAll(options: MoveAllOptions): Promise<number>
}

export interface MoveOptions {
  id: number
  from: readonly ChangeState[]
  claims?: number
  outcome?: string
  patch: RowPatch
}

export interface MoveAllOptions {
  run: string
  from: ChangeState
  patch: RowPatch
  limit?: number
  /** Only those of a breaker. */
  breakerKey?: string
  /** Only those that were never sent. */
  unsent?: boolean
  /** Not those with this outcome. */
  exceptOutcome?: string
}

export interface ClaimOptions {
  sender: FencingToken
  id: number
  /** How often it had been sent when the caller read it. */
  sends: number
  /** Now, in milliseconds since 1970. */
  at: number
  /** The facts of the check just before, as JSON text. */
  before?: string
}

export function createLedger({ store, fence }: { store: Store; fence: () => void }): Ledger {
  const { db, writes, isShared } = store
  const commits = new GroupCommit(writes)
  return {
    ...createRunReads(store),
    ...createKeyReads(store),
    now: () => store.now(),
    isShared,
    stage: createStage(store),
    async claim(options) {
      fence()
      const claimed = await commits.write((group) => claim({ ...group, ...options }))
      // The process may have been suspended while it waited for the disk.
      fence()
      return claimed
    },
    becomeSender: (options) => becomeSender({ db: writes, ...options }),
    move: (options) => commits.write(({ db }) => move({ db, ...options })),
    moveAll: (options) => moveAll({ db, ...options }),
  }
}

async function moveAll(options: MoveAllOptions & { db: Kysely<StateTables> }) {
  const { db, run, from, patch, limit, breakerKey, unsent = false, exceptOutcome } = options
  const isMeant = (row: ExpressionBuilder<StateTables, 'changes'>) =>
    row.and([
      row('run', '=', run),
      row('state', '=', from),
      ...(breakerKey === undefined ? [] : [row('breaker_key', '=', breakerKey)]),
      ...(unsent ? [row('sends', '=', 0)] : []),
      ...(exceptOutcome === undefined
        ? []
        : [row.or([row('outcome', 'is', null), row('outcome', '!=', exceptOutcome)])]),
    ])
  const chosen = db.selectFrom('changes').select('id').where(isMeant)
  const { numUpdatedRows } = await db
    .updateTable('changes')
    .set(toColumns(patch))
    .where('id', 'in', limit === undefined ? chosen : chosen.orderBy('row').limit(limit))
    // Again: of a row that changed in the meantime, PostgreSQL rechecks these conditions only.
    .where(isMeant)
    .executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

async function claim({ db, once, sender, id, sends, at, before }: ClaimOptions & Group) {
  await once(sender.token, () => holdSender(db, sender))
  const claimed = await db
    .updateTable('changes')
    .set((column) => ({
      state: 'sending',
      claims: column('claims', '+', 1),
      sends: column('sends', '+', 1),
      sent_at: at,
      answered_at: null,
      lookups: 0,
      ...(before !== undefined && { before }),
    }))
    .where('id', '=', id)
    .where('run', '=', sender.run)
    .where('state', '=', 'staged')
    .where('sends', '=', sends)
    .returningAll()
    .executeTakeFirst()
  return claimed && toRow(claimed)
}

async function move({ db, id, from, claims, outcome, patch }: MoveOptions & { db: Kysely<StateTables> }) {
  let update = db.updateTable('changes').set(toColumns(patch)).where('id', '=', id).where('state', 'in', from)
  if (claims !== undefined) update = update.where('claims', '=', claims)
  if (outcome !== undefined) update = update.where('outcome', '=', outcome)
  const { numUpdatedRows } = await update.executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}
