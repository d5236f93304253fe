import { Client, Connection } from '@temporalio/client'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { identify } from '../../core/state/process-identity.ts'
import { findWorker, temporalPlace } from '../../scripts/session/temporal.ts'
import { toFailure } from '../../scripts/terminal/failures.ts'
import { readSettings } from '../../worker/settings/settings.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'

const env = { BILLING_BASE_URL: 'https://api.example.test', BILLING_TOKEN: 't', BILLING_WORKSPACE: 'acc_1' }

/** A Temporal frontend without the rest of the server: it answers its port and can do nothing. */
async function startFrontend(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1')
  server.on('stream', (stream, { ':path': path }) => {
    const head = { ':status': 200, 'content-type': 'application/grpc' }
    if (path?.endsWith('/GetSystemInfo') !== true) {
      const message = 'Not enough hosts to serve the request'
      stream.respond({ ...head, 'grpc-status': '14', 'grpc-message': message }, { endStream: true })
      return
    }
    stream.respond(head, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.alloc(5))
  })
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('while Temporal answers its port without hosts, a command says that it cannot work yet, in one sentence', async () => {
  const address = await startFrontend()
  // Without the retries of a command.
  const connection = await Connection.connect({ address, interceptors: [] })
  onTestFinished(() => connection.close())
  const client = new Client({ connection })
  const settings = readSettings({ env, cwd: '/' })
  const place = { connectionOptions: { address }, namespace: 'default' }
  for (const call of [
    () => findWorker({ client, settings, place }),
    () => client.workflow.start('exportData', { workflowId: 'export', taskQueue: 'q', args: [{}] }),
    () => client.workflow.getHandle('export').signal('stop'),
  ]) {
    const error: unknown = await call().then(
      () => undefined,
      (failure: unknown) => failure,
    )
    expect(toFailure(error)).toMatchObject({
      message: 'Temporal cannot do this now: Not enough hosts to serve the request.',
      hint: 'Run the same command again in a moment. If that does not help, look at the Temporal server.',
      exitCode: 1,
    })
  }
})

test('a profile of temporal.toml is used although the record of a killed dev server is still in the data folder', async () => {
  const dataDir = await temporaryFolder()
  const config = join(dataDir, 'temporal.toml')
  await writeFile(config, '[profile.default]\naddress = "temporal.example.test:7233"\n')
  await mkdir(join(dataDir, 'dev-server'))
  const server = spawn('sleep', ['60'])
  await once(server, 'spawn')
  const record = {
    ...identify(server.pid ?? 0),
    address: '127.0.0.1:1',
    uiUrl: 'http://127.0.0.1:2',
    database: join(dataDir, 'temporal.db'),
  }
  await writeFile(join(dataDir, 'dev-server', 'server.json'), JSON.stringify(record))
  const settings = readSettings({
    env: { ...env, TEMPORAL_CONFIG_FILE: config, CONNECTOR_DATA_DIR: dataDir },
    cwd: '/',
  })
  const addressOf = () => temporalPlace(settings).connectionOptions.address
  expect(addressOf()).toBe('127.0.0.1:1')
  server.kill('SIGKILL')
  await once(server, 'exit')
  expect(addressOf()).toBe('temporal.example.test:7233')
})

test("Temporal's settings file that cannot be read is named in one sentence, as with the HOME of another user", () => {
  const file = import.meta.dirname
  expect(() =>
    temporalPlace(readSettings({ env: { ...env, TEMPORAL_CONFIG_FILE: file }, cwd: '/' })),
  ).toThrow(
    expect.objectContaining({
      name: 'RefusedError',
      message: "Temporal's settings cannot be read (EISDIR: illegal operation on a directory, read).",
      hint: 'Let this user read the file, or set HOME to the home folder of this user.',
    }),
  )
})
