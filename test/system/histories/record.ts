// Records a history of every workflow from real runs: npm run histories. They are in recorded/<version>/, and replay.test.ts
// holds the workflows to them.
import { Client, Connection } from '@temporalio/client'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createSandbox } from '../../../sandbox/sandbox.ts'
import { findBinary } from '../../../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { startWorker } from '../../../worker/start-worker.ts'
import { scenarios } from './scenarios.ts'
import { withoutPlaces } from './without-places.ts'

const workspace = 'acc_recorded'

const { version } = createRequire(import.meta.url)('../../../package.json') as { version: string }
const folder = new URL(`recorded/${version}/`, import.meta.url)
await mkdir(folder, { recursive: true })

const dataDir = await mkdtemp(join(tmpdir(), 'histories-'))
const receiver = createServer((_, response) => response.end('ok')).listen(0, '127.0.0.1')
await once(receiver, 'listening')
const startTask = (title: string) => {
  console.log(title)
  return { end: () => undefined }
}
const { env } = process
const binary = await findBinary({ env, startTask })
const counts = { customers: 300, subscriptions: 20, plans: 3, retentions: 0, creditnotes: 12 }
const sandbox = await createSandbox({ seed: 7, workspace, counts })
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
const settings = readSettings({
  env: {
    BILLING_BASE_URL: sandbox.url,
    BILLING_TOKEN: sandbox.token,
    BILLING_WORKSPACE: workspace,
    BILLING_REQUESTS_PER_SECOND: '500',
    BILLING_SETTLE_SECONDS: '0.05',
    CONNECTOR_DATA_DIR: dataDir,
    NOTIFY_URL: `all=${receiverUrl}`,
    BILLING_ALLOW_HTTP: 'true',
  },
  cwd: dataDir,
})
const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary) })
const temporal = { connectionOptions: { address: server.address }, namespace: 'default' }
// A short list is read in ranges, too.
const worker = await startWorker({ settings: { ...settings, recordsPerRange: 100 }, temporal })
const connection = await Connection.connect({ address: server.address })
try {
  const client = new Client({ connection })
  const place = { client, taskQueue: settings.taskQueue, dataDir, sandbox }
  for (const [name, act] of Object.entries(scenarios)) {
    const { workflowId, runId } = await act(place)
    const words = ['workflow', 'show', '--workflow-id', workflowId, ...(runId ? ['--run-id', runId] : [])]
    const where = ['--address', server.address, '--output', 'json']
    const { stdout } = await promisify(execFile)(binary, [...words, ...where], { maxBuffer: 1 << 26 })
    const places = {
      [dataDir]: '/data',
      [sandbox.url]: 'https://billing.example',
      [worker.identity.store]: 'store',
      [receiverUrl]: 'https://receiver.example/',
    }
    const history = withoutPlaces({ history: JSON.parse(stdout) as object, places })
    const path = new URL(`${name}.json`, folder)
    await writeFile(path, `${JSON.stringify(history)}\n`)
    console.log(`${name}: ${(history as { events: unknown[] }).events.length} events`)
  }
} finally {
  await connection.close()
  await worker.stop()
  await server.stop()
  await sandbox.close()
  receiver.close()
  await rm(dataDir, { recursive: true, force: true })
}
