import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { FleetRate, takeShare, type ShareStore } from '../../../core/billing/fleet-rate.ts'
import { RateLimiter } from '../../../core/billing/rate-limit.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { until } from '../export/world.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

let made = 0
async function openShares(workers: number) {
  const schema = `connector_rate_${++made}`
  const open = async (): Promise<ShareStore> => {
    const state = await openState({ folder: await temporaryFolder(), database: { url, schema } })
    onTestFinished(() => state.close())
    return state.rateShares!
  }
  const stores: ShareStore[] = []
  for (let index = 0; index < workers; index += 1) stores.push(await open())
  return { stores, run: (statement: string) => askPostgres(url, `set search_path = ${schema}; ${statement}`) }
}

test('of workers that take a share at the same moment, all know what the others took', async () => {
  const { stores } = await openShares(8)
  const take = async (store: ShareStore): Promise<number> => {
    const { shares: from, now } = await store.read('all')
    const taken = takeShare({ shares: JSON.parse(from), worker: store.worker, perSecond: 20, now })
    const isTaken = await store.replace('all', { from, to: JSON.stringify(taken.shares) })
    return isTaken ? taken.requests : await take(store)
  }
  for (let round = 0; round < 5; round += 1) {
    await Promise.all(stores.map(take))
    const held = Object.values(
      JSON.parse((await stores[0]!.read('all')).shares) as Record<string, { requests: number }>,
    )
    expect(held).toHaveLength(8)
    expect(held.reduce((sum, { requests }) => sum + requests, 0)).toBeLessThanOrEqual(20)
  }
})

test('a pause that one worker was asked for holds back all', async () => {
  const { stores } = await openShares(2)
  const [one, other] = stores.map(
    (store) =>
      new RateLimiter({ share: { requestsPerSecond: 10 }, concurrency: 4, fleet: new FleetRate(store) }),
  )
  const read = { write: false, spacings: [] }
  await one!.admit(read)
  one!.pause(60_000)
  await until(() => {
    other!.admit(read).catch(() => undefined)
    return other!.paused !== undefined
  })
  expect(other!.paused!.until - Date.now()).toBeGreaterThan(50_000)
})

test('a run’s rate that nobody used for a day is removed', async () => {
  const { stores, run } = await openShares(1)
  const [store] = stores
  const { shares: from } = await store!.read('run old')
  await store!.replace('run old', { from, to: '{"a":1}' })
  await run(`update rates set used_at = used_at - 90000000 where name = 'run old'`)
  await store!.read('run new')
  expect(await store!.read('run old')).toMatchObject({ shares: '{}' })
})
