import { sql } from 'kysely'
import { findWorkers, refuseOtherFiles, type SeenWorker } from '../../core/state/postgres/membership.ts'
import { findServerProblems } from '../../core/state/postgres/server-problems.ts'
import { placeOf, type StateDatabase } from '../../core/state/postgres/postgres-store.ts'
import type { SharedStore } from '../../core/state/open.ts'
import { filesIdOf, openFiles } from '../../worker/files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { refuseOlderThanMark, sharedMark } from '../../core/state/claims-mark.ts'
import { askState, sharedFolder } from '../runs/run-files.ts'
import { type Finding, runCheck, wrong } from './places.ts'

/** Checks that the state on PostgreSQL is usable and keeps what the guarantees need. */
export async function checkState(
  settings: Pick<Settings, 'state' | 'dataDir' | 'filesUrl' | 's3'> & {
    database: StateDatabase
  },
): Promise<Finding[]> {
  const { state: place, database } = settings
  return await runCheck('state', async () => {
    const checked = await askState(place, async ({ shared, ledger }) => {
      const store = shared as SharedStore
      const bucket = openFiles(settings)
      if (bucket !== undefined) await refuseOtherFiles({ store, files: await filesIdOf(bucket) })
      await refuseOlderThanMark({ ledger, mark: sharedMark({ ...settings, shared: sharedFolder(settings) }) })
      const problems = [...(await findServerProblems(store)), ...(await findMissingRights(store, database))]
      if (problems.length > 0) return problems.map((problem) => wrong('state', problem))
      const used = describeUse(await findWorkers(store))
      return `The state in ${store.place} is writable; ${used}.`
    })
    return checked ?? `There is no state in ${placeOf(database)} yet; the worker creates it when it starts.`
  })
}

function describeUse(workers: readonly SeenWorker[]): string {
  const seen = workers.map(({ worker, ms }) => `${worker} (seen ${Math.ceil(ms / 1000)} s ago)`)
  return seen.length === 0 ? 'no worker uses it' : `it is used by ${seen.join(' and ')}`
}

async function findMissingRights({ db, place }: SharedStore, { schema }: StateDatabase): Promise<string[]> {
  const table = `${quoted(schema)}.changes`
  const { rows } = await sql<{ allowed: boolean; name: string }>`select current_user::text as name,
    has_schema_privilege(${schema}, 'usage') and has_schema_privilege(${schema}, 'create')
      and has_table_privilege(${table}, 'select') and has_table_privilege(${table}, 'insert')
      and has_table_privilege(${table}, 'update') as allowed`.execute(db)
  const [right] = rows
  if (right?.allowed !== false) return []
  return [
    `The user ${right.name} may not write in ${place}. Grant create and usage on the schema, and all on its tables.`,
  ]
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
