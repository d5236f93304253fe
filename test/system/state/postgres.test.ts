import { afterAll, beforeAll } from 'vitest'
import { describeState } from '../../core/state/contract/state.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { startPostgres, type Postgres } from '../destinations/postgres-server.ts'

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

let made = 0
const newDatabase = () => ({ url, schema: `connector_acc_${++made}` })

describeState(async () => ({ folder: await temporaryFolder(), database: newDatabase() }))
