import type { ExpressionBuilder } from 'kysely'
import { type ClaimOptions, createClaims, type FencingToken } from './claims.ts'
import { createQueries } from './queries.ts'
import { type LedgerRow, type RowPatch, storable } from './row.ts'
import { createStage } from './stage.ts'
import { type Store, transact } from '../store.ts'
import type { ChangeState, StateTables } from '../schema.ts'

/**
 * The durable record of every change. It stores rows; core/changes/transitions.ts decides which transitions are allowed.
 * Every write is on disk when its promise resolves.
 */
export type Ledger = ReturnType<typeof createLedger>

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
  /** Only while this is the right to claim changes of the run. */
  sender?: FencingToken | undefined
}

export interface MarkRestoredOptions {
  at: number
  /** Changes of these kinds may have been sent so often. */
  bounded: { kinds: readonly string[]; sends: number }
  /** How many claims the ledger is known to lack. */
  forgotten: number
}

export function createLedger({
  store,
  fence,
  onClaim,
}: {
  store: Store
  /** @throws {LockLostError} this process no longer holds the data folder: the change must not be sent */
  fence: () => void
  /** Called after the commit of each claim, which then counts as made when its promise resolves. */
  onClaim?: (() => Promise<void>) | undefined
}) {
  const { db, isShared, isIn } = store
  const { hasRight, refuseSuperseded, ...claims } = createClaims(store)
  return {
    ...createQueries(store),
    ...claims,
    now: () => store.now(),
    isShared,
    stage: createStage(store),
    /**
     * Claims a staged change: from then on it counts as possibly sent. Undefined if it is no longer staged or was sent since
     * the caller read it, so that of two claims of one change only one succeeds.
     *
     * @throws {SupersededError} another attempt became the run's sender
     * @throws {LockLostError} this process no longer holds the data folder
     */
    async claim(options: ClaimOptions): Promise<LedgerRow | undefined> {
      fence()
      const claimed = await claims.claim(options)
      if (claimed !== undefined) await onClaim?.()
      // The process may have been suspended while it waited for the disk.
      fence()
      return claimed
    },
    /**
     * Updates all changes of a run that are in `from`; returns their number.
     *
     * @throws {SupersededError} with `sender`: another attempt became the run's sender
     */
    async moveAll(options: MoveAllOptions): Promise<number> {
      const { run, from, patch, breakerKey, unsent = false, exceptOutcome, sender } = options
      // No subselect of rows: PostgreSQL would compare each row with each until it has statistics of them, and of a row that
      // changes in the meantime it rechecks the outer conditions only.
      let moving = db
        .updateTable('changes')
        .set(storable(patch))
        .where('run', '=', run)
        .where('state', '=', from)
      if (breakerKey !== undefined) moving = moving.where('breakerKey', '=', breakerKey)
      if (unsent) moving = moving.where('sends', '=', 0)
      if (exceptOutcome !== undefined)
        moving = moving.where((row) =>
          row.or([row('outcome', 'is', null), row('outcome', '!=', exceptOutcome)]),
        )
      if (sender !== undefined) moving = moving.where(hasRight(sender))
      const { numUpdatedRows } = await moving.executeTakeFirstOrThrow()
      if (numUpdatedRows === 0n && sender !== undefined) await refuseSuperseded(sender)
      return Number(numUpdatedRows)
    },
    /** Makes these rows of a run, which were not sent yet, part of its canary. */
    async addToCanary({ run, rows }: { run: string; rows: readonly number[] }): Promise<void> {
      if (rows.length === 0) return
      const canary = db.updateTable('changes').set({ phase: 0 }).where('run', '=', run)
      await canary.where(isIn('row', rows)).execute()
    },
    /** Counts requests that the ledger has lost against each change of a run that may have been sent. */
    async countLost({ run, sends }: { run: string; sends: number }): Promise<void> {
      await db
        .updateTable('changes')
        .set((row) => ({ sends: row('sends', '+', sends) }))
        .where('run', '=', run)
        .where('state', 'in', ['unknown', 'parked'])
        .where('holdsKey', '=', 1)
        .where('sends', '>', 0)
        .execute()
    },
    /**
     * Moves every open change to unknown, all or none, because the ledger was restored: each may have been sent once
     * without it. Returns their number by run. One that was moved before and not looked up since stays as it is, unless
     * claims were lost after the repair that moved it. Those that are parked stay so: see `refuseRestored` in
     * core/changes/resolve.ts.
     */
    async markRestored({
      at,
      bounded,
      forgotten,
    }: MarkRestoredOptions): Promise<ReadonlyMap<string, number>> {
      return await transact(db, async (transaction) => {
        const repaired = transaction.selectFrom('store').select('repairedAt')
        const { repairedAt } = await repaired.executeTakeFirstOrThrow()
        const isOpen = isOpenSince(forgotten > 0 ? repairedAt : 0)
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
            // A resume counts for some time from when it was sent last.
            sentAt: row.case().when('kind', 'in', bounded.kinds).then(at).else(row.ref('sentAt')).end(),
          }))
          .where(isOpen)
          .execute()
        // A person may have said of a parked one that it is absent, and it was sent again.
        await transaction
          .updateTable('changes')
          .set((row) => ({ sends: row('sends', '+', bounded.sends), sentAt: at }))
          .where('kind', 'in', bounded.kinds)
          .where('state', '=', 'parked')
          .where('holdsKey', '=', 1)
          .where('sends', '>', 0)
          .execute()
        await transaction
          .updateTable('store')
          .set((row) => ({ repairedAt: at, forgottenClaims: row('forgottenClaims', '+', forgotten) }))
          .execute()
        return new Map(open.map(({ run, rows }) => [run, rows]))
      })
    },
  }
}

/** `repairedAt`: the repair after which claims were lost; 0 for none. */
const isOpenSince = (repairedAt: number) => (row: ExpressionBuilder<StateTables, 'changes'>) =>
  row.or([
    row('state', 'in', ['staged', 'sending']),
    row.and([
      row('state', '=', 'unknown'),
      row.or([
        row('outcome', 'is', null),
        row('outcome', '!=', 'restored'),
        row('lookups', '>', 0),
        row('unknownSince', '<=', repairedAt),
      ]),
    ]),
  ])
