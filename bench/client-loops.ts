// Bare loops of the connector's own client, which receives and parses pages and discards them. Usage: node
// client-loops.ts <service url> <pages> <loops> <requests per second>
import { createBilling } from '../core/billing/client.ts'
import { listResources } from '../core/billing/resources/lists.ts'

const [baseUrl = '', pages = '', loops = '', rate = ''] = process.argv.slice(2)
const concurrency = Number(loops)
const billing = createBilling({
  baseUrl,
  workspace: 'acc_bench',
  testMode: false,
  token: () => Promise.resolve('bench'),
  rate: { requestsPerSecond: Number(rate) },
  concurrency,
})

let requests = 0
const loop = async () => {
  while (requests < Number(pages)) {
    requests += 1
    const page = requests
    await billing.list({ resource: listResources.customers, page, pageSize: 100, ordering: 'created' })
  }
}
const started = performance.now()
await Promise.all(Array.from({ length: concurrency }, loop))
console.log(JSON.stringify({ requests, seconds: (performance.now() - started) / 1000 }))
