import { sql } from 'kysely'
import type { Store } from '../store.ts'
import { StateError } from '../errors.ts'

/** What the guarantees need of a server, as it is behind this connection. */
interface Server {
  version: number
  encoding: string
  fsync: string
  fullPageWrites: string
  synchronousCommit: string
  readOnly: string
  isReplica: boolean
  /** In ms; 0 for none, null where the version does not have it. */
  timeouts: Record<keyof typeof leastTimeoutsMs, number | null>
}

const oldestVersion = 140_000
/** Moving all rows of a large run takes some seconds; a claim waits for a sender that freezes in its transaction. */
const leastTimeoutsMs = {
  statement_timeout: 30_000,
  lock_timeout: 5_000,
  idle_in_transaction_session_timeout: 10_000,
  transaction_timeout: 30_000,
} as const
const timeoutNames = Object.keys(leastTimeoutsMs) as (keyof typeof leastTimeoutsMs)[]

async function inspect(db: Store['db']): Promise<Server> {
  const setting = (name: string) => sql.raw<string>(`current_setting('${name}')`)
  const timeouts = timeoutNames.map(
    (name) => `'${name}', extract(epoch from current_setting('${name}', true)::interval) * 1000`,
  )
  const { rows } = await sql<Server>`select ${setting('server_version_num')}::int as version,
    ${setting('server_encoding')} as encoding, ${setting('fsync')} as fsync,
    ${setting('full_page_writes')} as "fullPageWrites", ${setting('synchronous_commit')} as "synchronousCommit",
    json_build_object(${sql.raw(timeouts.join(', '))}) as timeouts,
    ${setting('transaction_read_only')} as "readOnly", pg_is_in_recovery() as "isReplica"`.execute(db)
  return rows[0]!
}

/** With one of these the ledger can forget what was sent. */
function dangersOf({ version, encoding, fsync, fullPageWrites, synchronousCommit }: Server): string[] {
  return [
    ...(version < oldestVersion
      ? [`it is PostgreSQL ${Math.floor(version / 10_000)}; the connector needs 14 or newer.`]
      : []),
    ...(encoding === 'UTF8'
      ? []
      : [`its encoding is ${encoding}; create the database with the encoding UTF8.`]),
    ...(fsync === 'on'
      ? []
      : ['it runs with fsync = off, so a crash of its machine can lose what was sent; set fsync = on.']),
    ...(fullPageWrites === 'on'
      ? []
      : [
          'it runs with full_page_writes = off, so a crash of its machine can damage the ledger; set it to on.',
        ]),
    ...(synchronousCommit === 'off'
      ? [
          'its synchronous_commit is off for this user; set it to on: alter role ... set synchronous_commit = on.',
        ]
      : []),
  ]
}

const unsafe = ({ place, danger }: { place: string; danger: string }) =>
  new StateError('UnsafeServerError', `PostgreSQL is not safe for ${place}: ${danger}`)

/** @throws {StateError} the ledger could forget what was sent */
export async function refuseUnsafeServer({ db, place }: Pick<Store, 'db' | 'place'>): Promise<void> {
  const [danger] = dangersOf(await inspect(db))
  if (danger !== undefined) throw unsafe({ place, danger })
}

/** A larger difference means that a machine does not follow NTP. */
const mostSkewMs = 60_000

/** What is wrong with the server or with the user's rights, a sentence each. */
export async function findServerProblems({
  db,
  place,
  now,
}: Pick<Store, 'db' | 'place' | 'now'>): Promise<string[]> {
  const server = await inspect(db)
  const skew = now() - Date.now()
  return [
    ...dangersOf(server).map((danger) => unsafe({ place, danger }).message),
    ...timeoutNames.flatMap((name) => {
      const [ms, leastMs] = [server.timeouts[name], leastTimeoutsMs[name]]
      if (ms === null || ms === 0 || ms >= leastMs) return []
      return [`The ${name} of the user in ${place} is ${ms} ms; set it to at least ${leastMs / 1000} s.`]
    }),
    ...(server.isReplica ? [`The server of ${place} is a read replica; name the primary.`] : []),
    ...(server.readOnly === 'on' && !server.isReplica
      ? [`The user in ${place} may only read (default_transaction_read_only); set it to off for this user.`]
      : []),
    ...(Math.abs(skew) > mostSkewMs
      ? [
          `The clock of PostgreSQL is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} this ` +
            'machine. Enable NTP on both: waits for a lost reply go by it.',
        ]
      : []),
  ]
}
