import { type Kysely, sql } from 'kysely'
import { among } from '../in-values.ts'
import { type LedgerRow, toRow } from './row.ts'
import type { ChangeState, StateTables } from '../tables.ts'

/** What the ledger knows of the changes of a run. */
export interface RunReads {
  row(options: { run: string; row: number }): Promise<LedgerRow | undefined>
  byId(options: { id: number }): Promise<LedgerRow | undefined>
  /** The next changes of a run that may be sent, in the order of its rows. */
  due(options: DueOptions): Promise<LedgerRow[]>
  /** The last changes of a lane that were sent and got an outcome after `since`, newest first. */
  lastClosed(options: { run: string; lane: string; since: number; limit: number }): Promise<LedgerRow[]>
  /** The change of a lane that was sent last. */
  lastSent(options: { run: string; lane: string }): Promise<LedgerRow | undefined>
  /** The change of a run that was answered last and is done: what a look-up surely has to find. */
  lastDone(options: { run: string }): Promise<LedgerRow | undefined>
  /** How many changes of a run stand where, and with which outcome. */
  counts(options: { run: string }): Promise<Count[]>
  /** How many changes of all runs stand where. 0.2 ms for every 1,000 of them, in which nothing else goes on. */
  totals(): Promise<{ state: ChangeState; number: number }[]>
  /** How often changes of a run were claimed; it only ever grows. */
  claims(options: { run: string }): Promise<number>
  /** Of each row of a run that was staged, where it stands and how often it was claimed. */
  claimsByRow(options: { run: string }): Promise<RowClaims[]>
  /** The next changes of a run in the order of its rows. */
  page(options: PageOptions): Promise<LedgerRow[]>
  /** All changes of a run, in memory only a page at a time. Writes may go on meanwhile. */
  rows(options: { run: string; state?: ChangeState; outcome?: string }): AsyncGenerator<LedgerRow>
  /** When the next staged change of a run may be sent; undefined where none is staged. */
  nextDue(options: { run: string; exceptLanes?: readonly string[] }): Promise<number | undefined>
}

export type RowClaims = Pick<LedgerRow, 'id' | 'row' | 'state' | 'claims' | 'sends' | 'outcome' | 'looks'>

export interface Count {
  state: ChangeState
  outcome: string | null
  lane: string
  number: number
  /** How many of them were sent, or could have been. */
  tried: number
  /** How many of them have an id of the service. */
  withId: number
}

export interface DueOptions {
  run: string
  /** Now, in milliseconds since 1970: what is not to be sent before a later time is left. */
  at: number
  /** Only these rows (a canary). */
  rows?: readonly number[]
  /** Not from these lanes (their breaker is open). */
  exceptLanes?: readonly string[]
  /** Not these, which the caller has in hand. */
  exceptIds?: readonly number[]
  limit: number
}

export interface PageOptions {
  run: string
  state?: ChangeState
  outcome?: string
  afterRow?: number
  limit: number
}

/** Enough that a page costs far less than what is done with its rows, and 100 bodies of 10 KB still fit easily. */
const pageRows = 500

export function createRunReads({ db }: { db: Kysely<StateTables> }): RunReads {
  const page = async ({ run, state, outcome, afterRow = 0, limit }: PageOptions) => {
    let select = db.selectFrom('changes').selectAll().where('run', '=', run).where('row', '>', afterRow)
    if (state !== undefined) select = select.where('state', '=', state)
    if (outcome !== undefined) select = select.where('outcome', '=', outcome)
    return (await select.orderBy('row').limit(limit).execute()).map(toRow)
  }

  return {
    page,
    // Not one open cursor: kysely would hold the connection for it, and no claim could be written meanwhile.
    rows: async function* ({ run, ...which }) {
      for (let afterRow = 0; ;) {
        const rows = await page({ run, ...which, afterRow, limit: pageRows })
        yield* rows
        const last = rows.at(-1)
        if (last === undefined || rows.length < pageRows) return
        afterRow = last.row
      }
    },
    row: async ({ run, row }) => {
      const found = await db
        .selectFrom('changes')
        .selectAll()
        .where('run', '=', run)
        .where('row', '=', row)
        .executeTakeFirst()
      return found && toRow(found)
    },
    byId: async ({ id }) => {
      const found = await db.selectFrom('changes').selectAll().where('id', '=', id).executeTakeFirst()
      return found && toRow(found)
    },
    due: (options) => due({ db, ...options }),
    lastClosed: async ({ run, lane, since, limit }) =>
      (
        await db
          .selectFrom('changes')
          .selectAll()
          .where('run', '=', run)
          .where('lane', '=', lane)
          .where('closed_at', '>', since)
          .where('sends', '>', 0)
          .where('state', '!=', 'dropped')
          .orderBy('closed_at', 'desc')
          .orderBy('id', 'desc')
          .limit(limit)
          .execute()
      ).map(toRow),
    lastSent: async ({ run, lane }) => {
      const found = await db
        .selectFrom('changes')
        .selectAll()
        .where('run', '=', run)
        .where('lane', '=', lane)
        .where('sent_at', 'is not', null)
        .orderBy('sent_at', 'desc')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst()
      return found && toRow(found)
    },
    lastDone: async ({ run }) => {
      const found = await db
        .selectFrom('changes')
        .selectAll()
        .where('run', '=', run)
        .where('state', '=', 'done')
        .where('answer_id', 'is not', null)
        .where('sends', '>', 0)
        .orderBy('closed_at', 'desc')
        .limit(1)
        .executeTakeFirst()
      return found && toRow(found)
    },
    counts: async ({ run }) =>
      await db
        .selectFrom('changes')
        .select(({ fn }) => [
          'state',
          'outcome',
          'lane',
          fn.countAll<number>().as('number'),
          sql<number>`sum(sends > 0)`.as('tried'),
          sql<number>`count(answer_id)`.as('withId'),
        ])
        .where('run', '=', run)
        .groupBy(['state', 'outcome', 'lane'])
        .execute(),
    totals: async () =>
      await db
        .selectFrom('changes')
        .select(({ fn }) => ['state', fn.countAll<number>().as('number')])
        .groupBy('state')
        .execute(),
    claims: async ({ run }) => {
      const row = await db
        .selectFrom('changes')
        .select(({ fn }) => fn.sum<number | null>('claims').as('claims'))
        .where('run', '=', run)
        .executeTakeFirst()
      return row?.claims ?? 0
    },
    claimsByRow: async ({ run }) =>
      await db
        .selectFrom('changes')
        .select(['id', 'row', 'state', 'claims', 'sends', 'outcome', 'looks'])
        .where('run', '=', run)
        .orderBy('row')
        .execute(),
    nextDue: async ({ run, exceptLanes = [] }) => {
      const row = await db
        .selectFrom('changes')
        .select(({ fn }) => fn.min<number | null>('not_before').as('at'))
        .where('run', '=', run)
        .where('state', '=', 'staged')
        .where('lane', 'not in', among(exceptLanes))
        .executeTakeFirst()
      return row?.at ?? undefined
    },
  }
}

async function due({
  db,
  run,
  at,
  rows,
  exceptLanes = [],
  exceptIds = [],
  limit,
}: DueOptions & { db: Kysely<StateTables> }) {
  let staged = db
    .selectFrom('changes')
    .selectAll()
    .where('run', '=', run)
    .where('state', '=', 'staged')
    .where('not_before', '<=', at)
  if (rows !== undefined) staged = staged.where('row', 'in', among(rows))
  if (exceptLanes.length > 0) staged = staged.where('lane', 'not in', among(exceptLanes))
  if (exceptIds.length > 0) staged = staged.where('id', 'not in', among(exceptIds))
  return (await staged.orderBy('row').limit(limit).execute()).map(toRow)
}
