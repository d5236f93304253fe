import { sql } from 'kysely'
import type { LedgerRow } from './row.ts'
import type { Store } from '../store.ts'
import type { ChangeEvent, ChangeState } from '../schema.ts'

/** Queries over the changes of a run. */
export interface RunReads {
  row(options: { run: string; row: number }): Promise<LedgerRow | undefined>
  byId(options: { id: number }): Promise<LedgerRow | undefined>
  /** The next changes of a run that may be sent, in row order. */
  due(options: DueOptions): Promise<LedgerRow[]>
  /** The last events of a breaker after `since`, newest first. */
  breakerEvents(options: {
    run: string
    breakerKey: string
    since: number
    exceptFaults?: boolean
    limit: number
  }): Promise<ChangeEvent[]>
  /** The change of a breaker that was sent last. */
  lastSent(options: { run: string; breakerKey: string }): Promise<LedgerRow | undefined>
  /** The change of a run that is known to be done and was answered last: a lookup must find it. A person may be wrong. */
  lastDone(options: { run: string }): Promise<LedgerRow | undefined>
  /** The number of changes of a run by state, outcome and breaker. */
  counts(options: { run: string }): Promise<Count[]>
  /** The number of changes of all runs by state. Blocks the process for 0.2 ms per 1,000 changes. */
  totals(): Promise<{ state: ChangeState; number: number }[]>
  /** How many claims were made, those included that a repair has counted as forgotten: it never falls. */
  claimed(): Promise<number>
  /**
   * The number of rows of a run, and a number that grows with each claim of it. It grows as well with a repair, which may have
   * forgotten claims, by the time since the repair before: no run makes a claim each millisecond.
   */
  known(of: { run: string }): Promise<{ rows: number; claims: number }>
  /** The next changes of a run, in row order. */
  page(options: PageOptions): Promise<LedgerRow[]>
  /** All changes of a run, with one page in memory at a time. Writes may continue in the meantime. */
  rows(options: { run: string; state?: ChangeState; outcome?: string }): AsyncGenerator<LedgerRow>
  /** The canary of a run: the rows that go first, in order. */
  canaryRows(options: { run: string }): Promise<CanaryRow[]>
  /** When the next staged change of a run may be sent; undefined if none is staged. */
  nextDue(
    options: Pick<DueOptions, 'run' | 'rows' | 'canary' | 'exceptBreakerKeys'>,
  ): Promise<number | undefined>
}

export type CanaryRow = Pick<LedgerRow, 'row' | 'breakerKey' | 'state' | 'sends' | 'outcome'>

export interface Count {
  state: ChangeState
  outcome: string | null
  breakerKey: string
  number: number
  /** How many of them may have been sent. */
  tried: number
  /** How many others were refused by the service, for what a lookup then showed: their requests had no effect. */
  refused: number
  /** How many of them have an id from the service. */
  withId: number
}

export interface DueOptions {
  run: string
  /** Now, in milliseconds since 1970: changes with a later `notBefore` are left out. */
  at: number
  /** Only these rows. */
  rows?: readonly number[] | undefined
  /** Only the canary, and none of it that has failed and is due again. */
  canary?: boolean | undefined
  /** Not from these breakers, which are open. */
  exceptBreakerKeys?: readonly string[]
  /** Not these, which the caller is already sending. */
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

/** A page of this size costs far less than the work on its rows, and even large bodies fit in memory. */
const pageRows = 500

export function createRunReads({ db, isIn }: Pick<Store, 'db' | 'isIn'>): RunReads {
  const page = async ({ run, state, outcome, afterRow = 0, limit }: PageOptions) => {
    let select = db.selectFrom('changes').selectAll().where('run', '=', run).where('row', '>', afterRow)
    if (state !== undefined) select = select.where('state', '=', state)
    if (outcome !== undefined) select = select.where('outcome', '=', outcome)
    return await select.orderBy('row').limit(limit).execute()
  }

  return {
    page,
    // Pages instead of one open cursor, which would hold kysely's connection and block every claim.
    rows: async function* ({ run, ...which }) {
      for (let afterRow = 0; ;) {
        const rows = await page({ run, ...which, afterRow, limit: pageRows })
        yield* rows
        const last = rows.at(-1)
        if (last === undefined || rows.length < pageRows) return
        afterRow = last.row
      }
    },
    row: ({ run, row }) =>
      db.selectFrom('changes').selectAll().where('run', '=', run).where('row', '=', row).executeTakeFirst(),
    byId: ({ id }) => db.selectFrom('changes').selectAll().where('id', '=', id).executeTakeFirst(),
    due: (options) => due({ db, isIn, ...options }),
    breakerEvents: async ({ run, breakerKey, since, exceptFaults = false, limit }) => {
      const rows = await db
        .selectFrom('changes')
        .select('event')
        .where('run', '=', run)
        .where('breakerKey', '=', breakerKey)
        .where('eventAt', '>', since)
        .$if(exceptFaults, (query) => query.where('event', '!=', 'fault'))
        .orderBy('eventAt', 'desc')
        .orderBy('id', 'desc')
        .limit(limit)
        .execute()
      return rows.flatMap(({ event }) => event ?? [])
    },
    lastSent: ({ run, breakerKey }) =>
      db
        .selectFrom('changes')
        .selectAll()
        .where('run', '=', run)
        .where('breakerKey', '=', breakerKey)
        .where('sentAt', 'is not', null)
        .orderBy('sentAt', 'desc')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst(),
    lastDone: ({ run }) =>
      db
        .selectFrom('changes')
        .selectAll()
        .where('run', '=', run)
        .where('state', '=', 'done')
        .where('answerId', 'is not', null)
        .where('resolvedBy', 'is', null)
        .where('sends', '>', 0)
        .orderBy('closedAt', 'desc')
        .limit(1)
        .executeTakeFirst(),
    counts: async ({ run }) =>
      await db
        .selectFrom('changes')
        .select(({ fn }) => [
          'state',
          'outcome',
          'breakerKey',
          fn.countAll<number>().as('number'),
          sql<number>`count(*) filter (where sends > 0)`.as('tried'),
          sql<number>`count(*) filter (where sends = 0 and answered_at is not null)`.as('refused'),
          sql<number>`count(answer_id)`.as('withId'),
        ])
        .where('run', '=', run)
        .groupBy(['state', 'outcome', 'breakerKey'])
        .execute(),
    totals: async () =>
      await db
        .selectFrom('changes')
        .select(({ fn }) => ['state', fn.countAll<number>().as('number')])
        .groupBy('state')
        .execute(),
    claimed: async () => {
      const { claims } = await db
        .selectFrom('changes')
        .select(({ fn }) => fn.sum<number | null>('claims').as('claims'))
        .executeTakeFirstOrThrow()
      const store = await db.selectFrom('store').select('forgottenClaims').executeTakeFirstOrThrow()
      return (claims ?? 0) + store.forgottenClaims
    },
    known: async ({ run }) => {
      const { rows, claims } = await db
        .selectFrom('changes')
        .select(({ fn }) => [fn.countAll<number>().as('rows'), fn.sum<number | null>('claims').as('claims')])
        .where('run', '=', run)
        .executeTakeFirstOrThrow()
      const { repairedAt } = await db.selectFrom('store').select('repairedAt').executeTakeFirstOrThrow()
      return { rows, claims: repairedAt + (claims ?? 0) }
    },
    nextDue: async ({ run, exceptBreakerKeys = [], ...which }) => {
      const staged = stagedRows({ db, isIn, run, ...which })
        .select(({ fn }) => fn.min<number | null>('notBefore').as('at'))
        .where((row) => row.not(isIn('breakerKey', exceptBreakerKeys)))
      return (await staged.executeTakeFirst())?.at ?? undefined
    },
    canaryRows: ({ run }) =>
      db
        .selectFrom('changes')
        .select(['row', 'breakerKey', 'state', 'sends', 'outcome'])
        .where('run', '=', run)
        .where('phase', '=', 0)
        .orderBy('row')
        .execute(),
  }
}

/** The outcomes of staged changes that have failed and are due again. */
const failedOutcomes = ['fellBack', 'noEffect']

function stagedRows({
  db,
  isIn,
  run,
  rows,
  canary = false,
}: Pick<DueOptions, 'run' | 'rows' | 'canary'> & Pick<Store, 'db' | 'isIn'>) {
  let staged = db.selectFrom('changes').where('run', '=', run).where('state', '=', 'staged')
  if (rows !== undefined) staged = staged.where(isIn('row', rows))
  if (canary)
    staged = staged
      .where('phase', '=', 0)
      .where((row) => row.or([row('outcome', 'is', null), row('outcome', 'not in', failedOutcomes)]))
  return staged
}

async function due({
  db,
  isIn,
  at,
  exceptBreakerKeys = [],
  exceptIds = [],
  limit,
  ...which
}: DueOptions & Pick<Store, 'db' | 'isIn'>) {
  let staged = stagedRows({ db, isIn, ...which })
    .selectAll()
    .where('notBefore', '<=', at)
  if (exceptBreakerKeys.length > 0)
    staged = staged.where((row) => row.not(isIn('breakerKey', exceptBreakerKeys)))
  if (exceptIds.length > 0) staged = staged.where((row) => row.not(isIn('id', exceptIds)))
  return await staged.orderBy('row').limit(limit).execute()
}
