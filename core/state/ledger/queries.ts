import { type Kysely, sql } from 'kysely'
import type { LedgerRow } from './row.ts'
import type { Store } from '../store.ts'
import type { ChangeEvent, ChangeState, Mode, StateTables } from '../schema.ts'

/** The scope of a key: the same text in two modes, workspaces or kinds is two keys. */
export interface KeySpace {
  workspace: string
  mode: Mode
  kind: string
}

/** `droppedSince`: how many later changes with its key may have been sent, and were dropped. */
export type Holder = LedgerRow & { droppedSince: number | null }

/** The history of a key across all runs. */
export interface KeyHistory {
  /** Requests that may have taken effect, up to the last change with this key. */
  attempts: number
  /** When the last of these requests was sent, in milliseconds since 1970. */
  lastSentAt: number | null
  /** The run that sent it. */
  run: string
  /** The beginning of the answer to the last change with this key, or what its last lookup saw. */
  answer: string | null
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
  /** How many of them were answered as a failure, which their lookup has yet to confirm. */
  failing: number
  /** How many of them have an id from the service. */
  withId: number
  /** How many of them a person resolved. */
  resolved: number
}

/** Which staged changes of a run. */
interface Staged {
  run: string
  /** Only these rows. */
  rows?: readonly number[] | undefined
  /** Only the canary, and none of it that has failed and is due again. */
  canary?: boolean | undefined
  /** Not from these breakers, which are open. */
  exceptBreakerKeys?: readonly string[]
}

interface Due extends Staged {
  /** Now, in milliseconds since 1970: changes with a later `notBefore` are left out. */
  at: number
  /** Not these, which the caller is already sending. */
  exceptIds?: readonly number[]
  limit: number
}

interface Page {
  run: string
  state?: ChangeState
  outcome?: string
  afterRow?: number
  limit: number
}

interface OfBreaker {
  run: string
  breakerKey: string
}

/** A page of this size costs far less than the work on its rows, and even large bodies fit in memory. */
const pageRows = 500

/** The outcomes of staged changes that have failed and are due again. */
const failedOutcomes = ['fellBack', 'noEffect']

/** Queries over the changes of a run, and by key over those of all runs. */
export function createQueries({ db, isIn }: Pick<Store, 'db' | 'isIn'>) {
  const changes = ({ run }: { run: string }) => db.selectFrom('changes').where('run', '=', run)

  const page = async ({ run, state, outcome, afterRow = 0, limit }: Page): Promise<LedgerRow[]> => {
    let select = changes({ run }).selectAll().where('row', '>', afterRow)
    if (state !== undefined) select = select.where('state', '=', state)
    if (outcome !== undefined) select = select.where('outcome', '=', outcome)
    return await select.orderBy('row').limit(limit).execute()
  }

  /** When the ledger was repaired last, in milliseconds since 1970; 0 for never. */
  const repairedAt = async (): Promise<number> =>
    (await db.selectFrom('store').select('repairedAt').executeTakeFirstOrThrow()).repairedAt

  const staged = ({ run, rows, canary = false, exceptBreakerKeys = [] }: Staged) => {
    let select = changes({ run }).where('state', '=', 'staged')
    if (rows !== undefined) select = select.where(isIn('row', rows))
    if (canary)
      select = select
        .where('phase', '=', 0)
        .where((row) => row.or([row('outcome', 'is', null), row('outcome', 'not in', failedOutcomes)]))
    if (exceptBreakerKeys.length > 0)
      select = select.where((row) => row.not(isIn('breakerKey', exceptBreakerKeys)))
    return select
  }

  return {
    row: ({ run, row }: { run: string; row: number }): Promise<LedgerRow | undefined> =>
      changes({ run }).selectAll().where('row', '=', row).executeTakeFirst(),
    byId: ({ id }: { id: number }): Promise<LedgerRow | undefined> =>
      db.selectFrom('changes').selectAll().where('id', '=', id).executeTakeFirst(),
    /** The next changes of a run, in row order. */
    page,
    /**
     * All changes of a run, with one page in memory at a time; writes may continue in the meantime. Pages instead of one open
     * cursor, which would hold kysely's connection and block every claim.
     */
    async *rows(which: Omit<Page, 'afterRow' | 'limit'>): AsyncGenerator<LedgerRow> {
      for (let afterRow = 0; ;) {
        const rows = await page({ ...which, afterRow, limit: pageRows })
        yield* rows
        const last = rows.at(-1)
        if (last === undefined || rows.length < pageRows) return
        afterRow = last.row
      }
    },
    /** The next changes of a run that may be sent, in row order. */
    async due({ at, exceptIds = [], limit, ...which }: Due): Promise<LedgerRow[]> {
      let select = staged(which).selectAll().where('notBefore', '<=', at)
      if (exceptIds.length > 0) select = select.where((row) => row.not(isIn('id', exceptIds)))
      return await select.orderBy('row').limit(limit).execute()
    },
    /** When the next staged change of a run may be sent; undefined if none is staged. */
    async nextDue(which: Staged): Promise<number | undefined> {
      const next = staged(which).select(({ fn }) => fn.min<number | null>('notBefore').as('at'))
      return (await next.executeTakeFirst())?.at ?? undefined
    },
    /** The canary of a run: the rows that go first, in order. */
    canaryRows: (of: { run: string }): Promise<CanaryRow[]> =>
      changes(of)
        .select(['row', 'breakerKey', 'state', 'sends', 'outcome'])
        .where('phase', '=', 0)
        .orderBy('row')
        .execute(),
    /** The last events of a breaker after `since`, newest first. */
    async breakerEvents(
      of: OfBreaker & { since: number; exceptFaults?: boolean; limit: number },
    ): Promise<ChangeEvent[]> {
      const rows = await changes(of)
        .select('event')
        .where('breakerKey', '=', of.breakerKey)
        .where('eventAt', '>', of.since)
        .$if(of.exceptFaults === true, (query) => query.where('event', '!=', 'fault'))
        .orderBy('eventAt', 'desc')
        .orderBy('id', 'desc')
        .limit(of.limit)
        .execute()
      return rows.flatMap(({ event }) => event ?? [])
    },
    /** The change of a breaker that was sent last. */
    lastSent: (of: OfBreaker): Promise<LedgerRow | undefined> =>
      changes(of)
        .selectAll()
        .where('breakerKey', '=', of.breakerKey)
        .where('sentAt', 'is not', null)
        .orderBy('sentAt', 'desc')
        .orderBy('id', 'desc')
        .limit(1)
        .executeTakeFirst(),
    /** The change of a run that is known to be done and was answered last: a lookup must find it. A person may be wrong. */
    lastDone: (of: { run: string }): Promise<LedgerRow | undefined> =>
      changes(of)
        .selectAll()
        .where('state', '=', 'done')
        .where('answerId', 'is not', null)
        .where('resolvedBy', 'is', null)
        .where('sends', '>', 0)
        .orderBy('closedAt', 'desc')
        .limit(1)
        .executeTakeFirst(),
    /** The number of changes of a run by state, outcome and breaker. */
    counts: (of: { run: string }): Promise<Count[]> =>
      changes(of)
        .select(({ fn }) => [
          'state',
          'outcome',
          'breakerKey',
          fn.countAll<number>().as('number'),
          sql<number>`count(*) filter (where sends > 0)`.as('tried'),
          sql<number>`count(*) filter (where sends = 0 and answered_at is not null)`.as('refused'),
          sql<number>`count(*) filter (where state = 'unknown' and event = 'failure' and event_at >= sent_at)`.as(
            'failing',
          ),
          sql<number>`count(answer_id)`.as('withId'),
          sql<number>`count(resolved_by)`.as('resolved'),
        ])
        .groupBy(['state', 'outcome', 'breakerKey'])
        .execute(),
    /**
     * The number of changes of all runs by state, without parked resumes: no ended recovery takes a decision about them, and
     * the next one reads the list again. Counts in an index, by run: the process is blocked for 0.2 ms per 1,000 changes.
     */
    totals: (): Promise<{ state: ChangeState; number: number }[]> =>
      db
        .selectFrom((of) =>
          of
            .selectFrom('changes')
            .select(({ fn }) => ['run', 'state', fn.countAll<number>().as('number')])
            .groupBy(['run', 'state'])
            .as('counted'),
        )
        .select(({ fn }) => ['state', fn.sum<number>('number').as('number')])
        .where((or) => {
          const kind = or
            .selectFrom('changes')
            .select('kind')
            .whereRef('changes.run', '=', 'counted.run')
            .limit(1)
          return or.or([or('state', '<>', 'parked'), or(kind, '<>', 'resume-subscription')])
        })
        .groupBy('state')
        .execute(),
    /** How many claims were made, those included that a repair has counted as forgotten: it never falls. */
    async claimed(): Promise<number> {
      const { claims } = await db
        .selectFrom('changes')
        .select(({ fn }) => fn.sum<number | null>('claims').as('claims'))
        .executeTakeFirstOrThrow()
      const store = await db.selectFrom('store').select('forgottenClaims').executeTakeFirstOrThrow()
      return (claims ?? 0) + store.forgottenClaims
    },
    /**
     * The number of rows of a run, and a number that grows with each claim of it. It grows as well with a repair, which may
     * have forgotten claims, by the time since the repair before: no run makes a claim each millisecond.
     */
    async known(of: { run: string }): Promise<{ rows: number; claims: number }> {
      const { rows, claims } = await changes(of)
        .select(({ fn }) => [fn.countAll<number>().as('rows'), fn.sum<number | null>('claims').as('claims')])
        .executeTakeFirstOrThrow()
      return { rows, claims: (await repairedAt()) + (claims ?? 0) }
    },
    repairedAt,

    /** The changes of any run that hold one of these keys now. */
    holders: ({ keys, ...space }: KeySpace & { keys: readonly string[] }): Promise<Holder[]> =>
      inSpace(db, space)
        .selectAll()
        .select((holder) =>
          holder
            .selectFrom('changes as later')
            .select(({ fn }) => fn.countAll<number>().as('number'))
            .whereRef('later.workspace', '=', 'changes.workspace')
            .whereRef('later.mode', '=', 'changes.mode')
            .whereRef('later.kind', '=', 'changes.kind')
            .whereRef('later.key', '=', 'changes.key')
            .whereRef('later.id', '>', 'changes.id')
            .where('later.state', '=', 'dropped')
            .where('later.sends', '>', 0)
            .as('droppedSince'),
        )
        .where(isIn('key', keys))
        .where('holdsKey', '=', 1)
        .where('state', 'not in', ['rejected', 'dropped'])
        .orderBy('generation')
        .execute(),
    /**
     * The changes of other runs with any of these keys that may have been sent, and on which people have decided since; not
     * those in doubt again.
     */
    decidedByPeople: ({
      keys,
      run,
      ...space
    }: KeySpace & { run: string; keys: readonly string[] }): Promise<LedgerRow[]> =>
      inSpace(db, space)
        .selectAll()
        .where(isIn('key', keys))
        .where('run', '<>', run)
        .where('state', 'in', ['staged', 'done', 'dropped'])
        .where('sends', '>', 0)
        .where('resolvedBy', 'is not', null)
        .execute(),
    /** The changes of a run with any of these keys, in any state. */
    underKeys: (of: KeySpace & { run: string; keys: readonly string[] }): Promise<LedgerRow[]> =>
      inSpace(db, of)
        .selectAll()
        .where('run', '=', of.run)
        .where(isIn('key', of.keys))
        .orderBy('row')
        .execute(),
    /** The runs with changes of a kind that are staged, sending or unknown. */
    async unfinishedRuns(space: KeySpace): Promise<string[]> {
      const open = inSpace(db, space).where('state', 'in', ['staged', 'sending', 'unknown'])
      return (await open.select('run').distinct().orderBy('run').execute()).map(({ run }) => run)
    },
    /**
     * How often changes of a kind were claimed: those whose effect is known or given up, and all. Each claim adds one, so
     * what was counted before tells whether any was sent since.
     */
    async claimsOf(space: KeySpace): Promise<{ settled: number; all: number }> {
      const { settled, all } = await inSpace(db, space)
        .select(({ fn }) => [
          fn
            .sum<number | null>('claims')
            .filterWhere('state', 'not in', ['sending', 'unknown'])
            .as('settled'),
          fn.sum<number | null>('claims').as('all'),
        ])
        .executeTakeFirstOrThrow()
      return { settled: settled ?? 0, all: all ?? 0 }
    },
    async history({
      keys,
      ...space
    }: KeySpace & { keys: readonly string[] }): Promise<Map<string, KeyHistory>> {
      const rows = await inSpace(db, space)
        .select(['key', 'state', 'attemptsBefore', 'sends', 'sentAt', 'run', 'answer'])
        .where(isIn('key', keys))
        .where((or) => or.or([or('sends', '>', 0), or('state', '=', 'done')]))
        .orderBy('key')
        .orderBy('id')
        .execute()
      const byKey = new Map<string, KeyHistory>()
      // A change that continues a key's attempts is staged with those of the one before it.
      for (const { key, state, attemptsBefore, sends, sentAt, run, answer } of rows) {
        // A refused request had no effect, so it is not the last one that may have had one.
        const effective = sends - (state === 'rejected' ? 1 : 0)
        const earlier = byKey.get(key) ?? { lastSentAt: null, run }
        const sent = effective > 0 && sentAt !== null ? { lastSentAt: sentAt, run } : earlier
        const { lastSentAt, run: by } = sent
        byKey.set(key, { attempts: attemptsBefore + effective, lastSentAt, run: by, answer })
      }
      return byKey
    },
  }
}

const inSpace = (db: Kysely<StateTables>, { workspace, mode, kind }: KeySpace) =>
  db
    .selectFrom('changes')
    .where('workspace', '=', workspace)
    .where('mode', '=', mode)
    .where('kind', '=', kind)
