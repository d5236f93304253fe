import type { Kysely } from 'kysely'
import { among } from './among.ts'
import { type LedgerRow, toRow } from './ledger-row.ts'
import type { Mode, StateTables } from './tables.ts'

/** Where keys live: the same key of two modes, workspaces or kinds is two keys. */
export interface KeySpace {
  workspace: string
  mode: Mode
  kind: string
}

/** What the ledger remembers of a key over all runs. */
export interface KeyHistory {
  /** Requests that may have taken effect, up to its last change and as that one counted those before it. */
  attempts: number
  /** When the last of those attempts was sent, or when it was last done. */
  lastSentAt: number | null
  /** The run of that last attempt, and what it kept of the answer. */
  run: string
  answer: string | null
}

/** What the ledger knows of keys, whichever runs have them. */
export interface KeyReads {
  /** The changes, of whatever run, that hold any of these keys now. */
  holders(options: KeySpace & { keys: readonly string[] }): Promise<LedgerRow[]>
  /** The changes of a run with any of these keys, wherever they stand. */
  underKeys(options: KeySpace & { run: string; keys: readonly string[] }): Promise<LedgerRow[]>
  /** The runs that have changes of a kind which are staged, sending or unknown. */
  unfinishedRuns(options: KeySpace): Promise<string[]>
  history(options: KeySpace & { keys: readonly string[] }): Promise<Map<string, KeyHistory>>
}

export function createKeyReads({ db }: { db: Kysely<StateTables> }): KeyReads {
  return {
    holders: async ({ keys, ...space }) =>
      (
        await inSpace(db, space)
          .selectAll()
          .where('key', 'in', among(keys))
          .where('holds_key', '=', 1)
          .where('state', 'not in', ['rejected', 'dropped'])
          .orderBy('generation')
          .execute()
      ).map(toRow),
    underKeys: async ({ run, keys, ...space }) =>
      (
        await inSpace(db, space)
          .selectAll()
          .where('key', 'in', among(keys))
          .where('run', '=', run)
          .orderBy('row')
          .execute()
      ).map(toRow),
    unfinishedRuns: async (space) => {
      const rows = await inSpace(db, space)
        .select('run')
        .distinct()
        .where('state', 'in', ['staged', 'sending', 'unknown'])
        .orderBy('run')
        .execute()
      return rows.map(({ run }) => run)
    },
    history: (options) => history({ db, ...options }),
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
  keys,
  ...space
}: KeySpace & { db: Kysely<StateTables>; keys: readonly string[] }) {
  const rows = await inSpace(db, space)
    .select(['key', 'state', 'attempts', 'sends', 'sent_at', 'run', 'answer'])
    .where('key', 'in', among(keys))
    .where((or) => or.or([or('sends', '>', 0), or('state', '=', 'done')]))
    .orderBy('key')
    .orderBy('id')
    .execute()
  const byKey = new Map<string, KeyHistory>()
  // A change that goes on with a key's attempts is staged with those of the one before it.
  for (const { key, state, attempts, sends, sent_at, run, answer } of rows) {
    const lastSentAt = sent_at ?? byKey.get(key)?.lastSentAt ?? null
    // What the service refused has surely done nothing.
    const refused = state === 'rejected' ? 1 : 0
    byKey.set(key, { attempts: attempts + sends - refused, lastSentAt, run, answer })
  }
  return byKey
}
