import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { FleetRate, type RateStore } from '../../../core/billing/fleet-rate.ts'
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
  const open = async (): Promise<RateStore> => {
    const state = await openState({ folder: await temporaryFolder(), database: { url, schema } })
    onTestFinished(() => state.close())
    return state.rateShares!
  }
  const stores: RateStore[] = []
  for (let index = 0; index < workers; index += 1) stores.push(await open())
  return { stores, run: (statement: string) => askPostgres(url, `set search_path = ${schema}; ${statement}`) }
}

test('workers that join at the same moment all see each other when they ask again', async () => {
  const { stores } = await openShares(8)
  const ask = () => Promise.all(stores.map((store) => store.ask('all', 20)))
  await ask()
  for (const { askers, now } of await ask()) {
    expect(askers.map(({ worker }) => worker).toSorted()).toEqual(
      stores.map(({ worker }) => worker).toSorted(),
    )
    expect(askers.every(({ askedAt }) => Math.abs(now - askedAt) < 10_000)).toBe(true)
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

test('a worker that asked for a rate a day ago is removed', async () => {
  const { stores, run } = await openShares(2)
  const [one, other] = stores
  await one!.ask('run r', 2.5)
  await run(`update rates set asked_at = asked_at - 90000000`)
  const { askers } = await other!.ask('run r', 2.5)
  expect(askers).toMatchObject([{ worker: other!.worker, perSecond: 2.5 }])
})
