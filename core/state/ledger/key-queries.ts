import type { Kysely } from 'kysely'
import type { LedgerRow } from './row.ts'
import type { Store } from '../store.ts'
import type { Mode, StateTables } from '../schema.ts'

/** The scope of a key: the same text in two modes, workspaces or kinds is two keys. */
export interface KeySpace {
  workspace: string
  mode: Mode
  kind: string
}

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

/** Queries by key, across all runs. */
export interface KeyReads {
  /** The changes of any run that hold one of these keys now. */
  holders(options: KeySpace & { keys: readonly string[] }): Promise<LedgerRow[]>
  /** The changes of a run, or of all runs, with any of these keys, in any state. */
  underKeys(options: KeySpace & { run?: string; keys: readonly string[] }): Promise<LedgerRow[]>
  /** The runs with changes of a kind that are staged, sending or unknown. */
  unfinishedRuns(options: KeySpace): Promise<string[]>
  /**
   * How often changes of a kind were claimed: those whose effect is known or given up, and all. Each claim adds one, so what
   * was counted before tells whether any was sent since.
   */
  claimsOf(space: KeySpace): Promise<{ settled: number; all: number }>
  history(options: KeySpace & { keys: readonly string[] }): Promise<Map<string, KeyHistory>>
}

export function createKeyReads(store: Pick<Store, 'db' | 'isIn'>): KeyReads {
  const { db, isIn } = store
  return {
    holders: ({ keys, ...space }) =>
      inSpace(db, space)
        .selectAll()
        .where(isIn('key', keys))
        .where('holdsKey', '=', 1)
        .where('state', 'not in', ['rejected', 'dropped'])
        .orderBy('generation')
        .execute(),
    underKeys: async ({ run, keys, ...space }) => {
      const under = inSpace(db, space).selectAll().where(isIn('key', keys)).orderBy('row')
      return await (run === undefined ? under : under.where('run', '=', run)).execute()
    },
    unfinishedRuns: async (space) => {
      const rows = await inSpace(db, space)
        .select('run')
        .distinct()
        .where('state', 'in', ['staged', 'sending', 'unknown'])
        .orderBy('run')
        .execute()
      return rows.map(({ run }) => run)
    },
    claimsOf: async (space) => {
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
    history: (options) => history({ ...store, ...options }),
  }
}

const inSpace = (db: Kysely<StateTables>, { workspace, mode, kind }: KeySpace) =>
  db
    .selectFrom('changes')
    .where('workspace', '=', workspace)
    .where('mode', '=', mode)
    .where('kind', '=', kind)

async function history({
  db,
  isIn,
  keys,
  ...space
}: KeySpace & Pick<Store, 'db' | 'isIn'> & { keys: readonly string[] }) {
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
    const { lastSentAt, run: by } = effective > 0 && sentAt !== null ? { lastSentAt: sentAt, run } : earlier
    byKey.set(key, { attempts: attemptsBefore + effective, lastSentAt, run: by, answer })
  }
  return byKey
}
