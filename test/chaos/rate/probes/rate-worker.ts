/** One of several processes that send requests as fast as their shared rate allows, until it is killed. */
import { createBilling } from '../../../../core/billing/client.ts'
import { plans } from '../../../../core/billing/resources/catalog.ts'
import { FleetRate } from '../../../../core/billing/fleet-rate.ts'
import { openState } from '../../../../core/state/open.ts'
import type { RateWorkerOptions } from '../rate.ts'

const { url, schema, baseUrl, requestsPerSecond, concurrency, writers, readers, runRate } = JSON.parse(
  process.argv[2] ?? '',
) as RateWorkerOptions
const state = await openState({ folder: '/nowhere', database: { url, schema } })
if (state.rateShares === undefined) throw new TypeError('the state shares no rate')
const fleet = new FleetRate(state.rateShares)
const settings = { baseUrl, workspace: 'acc', testMode: false, token: async () => 't', timeoutSeconds: 5 }
const whole = createBilling({
  ...settings,
  rate: { requestsPerSecond },
  concurrency,
  fleet,
  readWaitMs: () => 10,
})
const billing = runRate === undefined ? whole : whole.limited({ requestsPerSecond: runRate, run: 'r' })

const forEver = async (request: () => Promise<unknown>) => {
  for (;;) await request().catch(() => undefined)
}
for (let index = 0; index < readers; index += 1)
  void forEver(() => billing.list({ resource: plans, page: 1, pageSize: 1 }))
for (let index = 0; index < writers; index += 1)
  void forEver(() => billing.createAddon({ name: 'x' }, { beforeSend: async () => {} }))
process.send?.('listening')
