import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { sharedMark } from '../../../core/state/claims-mark.ts'
import { cached } from '../../../core/storage/cached.ts'
import { checkAll } from '../../system/check/findings.ts'
import { password, startPostgres } from '../../system/destinations/postgres-server.ts'
import { createWorld, openTestWorker, startTestWorker, type World } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const fleet = createFleet()
const { fleetOf } = fleet

/** What `check` says of the state. */
async function checkState(of: World, more: Record<string, string> = {}): Promise<string[]> {
  const { findings } = await checkAll(of, { ...fleetOf(of), ...more })
  expect(JSON.stringify(findings)).not.toContain(encodeURIComponent(password))
  return findings.flatMap(({ check, status, message }) =>
    check === 'state' ? [`${status}: ${message}`] : [],
  )
}

test('check names the state on PostgreSQL before and after the worker creates it, and an old ledger', async () => {
  const of = await createWorld({ counts: { customers: 3 } })
  expect(await checkState(of)).toEqual([expect.stringMatching(/^ok: There is no state in the schema .* yet/)])
  await startTestWorker(of, fleetOf(of))
  expect(await checkState(of)).toEqual([
    expect.stringMatching(
      /^ok: The state in the schema .* is writable; it is used by \d+@\S+ \(seen \d+ s ago\)\.$/,
    ),
  ])
  const other = { CONNECTOR_FILES_URL: `s3://exports/${of.workspace}-other` }
  const bound = expect.stringContaining(
    `are in s3://exports/${of.workspace}, not in s3://exports/${of.workspace}-other`,
  )
  expect(await checkState(of, other)).toEqual([bound])
  const { dataDir } = of
  await sharedMark({ shared: cached(dataDir, fleet.openStore(of)), dataDir })?.raise(2)
  expect(await checkState(of)).toEqual([
    expect.stringMatching(/^wrong: .* lacks 2 of 2 claims.*state repair/),
  ])
})

test('a bucket that is missing is said once, by its own check', async () => {
  const of = await createWorld({ counts: { customers: 3 } })
  await startTestWorker(of, fleetOf(of))
  const store = createServer((_, response) => {
    response.writeHead(404, { 'content-type': 'application/xml' })
    response.end('<Error><Code>NoSuchBucket</Code></Error>')
  }).listen(0, '127.0.0.1')
  await once(store, 'listening')
  onTestFinished(() => void store.close())
  const env = {
    CONNECTOR_STATE_URL: fleet.stateUrl,
    CONNECTOR_FILES_URL: 's3://nowhere/exports',
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    AWS_ACCESS_KEY_ID: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    AWS_REGION: 'us-east-1',
  }
  const wrong = (await checkAll(of, env)).wrong.map(({ check, message }) => `${check}: ${message}`)
  expect(wrong.filter((one) => /^(temporal|data folder): /.test(one))).toEqual([])
  expect(wrong).toContainEqual(expect.stringMatching(/^bucket: There is no bucket nowhere/))
})

test('a read replica is refused as the place of a state', async () => {
  const server = await startPostgres()
  onTestFinished(() => server.close())
  const stateUrl = await server.createDatabase()
  const of = await createWorld({ counts: { customers: 3 } })
  const worker = await openTestWorker(of, { ...fleetOf(of), CONNECTOR_STATE_URL: stateUrl })
  await worker.stop()
  await server.becomeReplica()
  expect(await checkState(of, { CONNECTOR_STATE_URL: stateUrl })).toEqual([
    expect.stringMatching(/^wrong: The server of the schema .* is a read replica; name the primary\.$/),
  ])
})
