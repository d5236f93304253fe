import type { ExpressionBuilder, Kysely } from 'kysely'
import { type KeyReads, createKeyReads } from './key-queries.ts'
import { type LedgerRow, type RowPatch, storable } from './row.ts'
import { type RunReads, createRunReads } from './run-queries.ts'
import {
  type BecomeSender,
  type ClaimOptions,
  type FencingToken,
  type MoveOptions,
  becomeSender,
  createRowWrites,
} from './claims.ts'
import { type Stage, createStage } from './stage.ts'
import type { Store } from '../store.ts'
import type { ChangeState, StateTables } from '../schema.ts'
import { transact } from '../store.ts'

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
   * @throws {SupersededError} if `sender` is given and another attempt became the run's sender
   */
  move(options: MoveOptions): Promise<boolean>
  /** Updates all changes of a run that are in `from`; returns their number. */
  moveAll(options: MoveAllOptions): Promise<number>
  /** Makes these rows of a run, which were not sent yet, part of its canary. */
  addToCanary(options: { run: string; rows: readonly number[] }): Promise<void>
  /**
   * Moves every open change to unknown, all or none, because the ledger was restored: each may have been sent once without
   * it. Returns their number by run. One that was moved before and not looked up since stays as it is.
   */
  markRestored(options: MarkRestoredOptions): Promise<ReadonlyMap<string, number>>
}

export interface MarkRestoredOptions {
  at: number
  /** Changes of these kinds may have been sent so often. */
  bounded: { kinds: readonly string[]; sends: number }
  /** How many claims the ledger is known to lack. */
  forgotten: number
}

export interface MoveAllOptions {
  run: string
  from: ChangeState
  patch: RowPatch
  /** Only those of a breaker. */
  breakerKey?: string
  /** Only those that were never sent. */
  unsent?: boolean
  /** Not those with this outcome. */
  exceptOutcome?: string
}

export function createLedger({
  store,
  fence,
  onClaim,
}: {
  store: Store
  fence: () => void
  /** Called after the commit of each claim, which then counts as made when its promise resolves. */
  onClaim?: (() => Promise<void>) | undefined
}): Ledger {
  const { db, writes, isShared, isIn } = store
  const { claim, move } = createRowWrites(store)
  return {
    ...createRunReads(store),
    ...createKeyReads(store),
    now: () => store.now(),
    isShared,
    stage: createStage(store),
    async claim(options) {
      fence()
      const claimed = await claim(options)
      if (claimed !== undefined) await onClaim?.()
      // The process may have been suspended while it waited for the disk.
      fence()
      return claimed
    },
    becomeSender: (options) => becomeSender({ db: writes, ...options }),
    move,
    moveAll: (options) => moveAll({ db, ...options }),
    addToCanary: async ({ run, rows }) => {
      if (rows.length === 0) return
      await db
        .updateTable('changes')
        .set({ phase: 0 })
        .where('run', '=', run)
        .where(isIn('row', rows))
        .execute()
    },
    markRestored: (options) => markRestored({ db, ...options }),
  }
}

async function moveAll(options: MoveAllOptions & { db: Kysely<StateTables> }) {
  const { db, run, from, patch, breakerKey, unsent = false, exceptOutcome } = options
  // No subselect: PostgreSQL would compare each row with each until it has statistics of them, and of a row that changes in
  // the meantime it rechecks the outer conditions only.
  let moving = db.updateTable('changes').set(storable(patch)).where('run', '=', run).where('state', '=', from)
  if (breakerKey !== undefined) moving = moving.where('breakerKey', '=', breakerKey)
  if (unsent) moving = moving.where('sends', '=', 0)
  if (exceptOutcome !== undefined)
    moving = moving.where((row) => row.or([row('outcome', 'is', null), row('outcome', '!=', exceptOutcome)]))
  const { numUpdatedRows } = await moving.executeTakeFirstOrThrow()
  return Number(numUpdatedRows)
}

async function markRestored({
  db,
  at,
  bounded,
  forgotten,
}: MarkRestoredOptions & { db: Kysely<StateTables> }): Promise<ReadonlyMap<string, number>> {
  return await transact(db, async (transaction) => {
    const isOpen = (row: ExpressionBuilder<StateTables, 'changes'>) =>
      row.or([
        row('state', 'in', ['staged', 'sending']),
        row.and([
          row('state', '=', 'unknown'),
          row.or([row('outcome', 'is', null), row('outcome', '!=', 'restored'), row('lookups', '>', 0)]),
        ]),
      ])
    const open = await transaction
      .selectFrom('changes')
      .select(({ fn }) => ['run', fn.countAll<number>().as('rows')])
      .where(isOpen)
      .groupBy('run')
      .execute()
    await transaction
      .updateTable('changes')
      .set((row) => ({
        state: 'unknown',
        outcome: 'restored',
        unknownSince: at,
        lookups: 0,
        answeredAt: null,
        claims: row('claims', '+', 1),
        sends: row
          .case()
          .when('kind', 'in', bounded.kinds)
          .then(row('sends', '+', bounded.sends))
          .else(row('sends', '+', 1))
          .end(),
      }))
      .where(isOpen)
      .execute()
    await transaction
      .updateTable('store')
      .set((row) => ({ repairedAt: at, forgottenClaims: row('forgottenClaims', '+', forgotten) }))
      .execute()
    return new Map(open.map(({ run, rows }) => [run, rows]))
  })
}
