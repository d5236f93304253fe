// The serving process of the benchmark: node serve.ts <customers> <latency in ms>. Prints its address and
// serves until stopped.
import { createSandbox } from '../sandbox/sandbox.ts'

const [customers = '1000', latencyMs = '0'] = process.argv.slice(2)
const sandbox = await createSandbox({
  counts: { customers: Number(customers), subscriptions: 0, plans: 1, retentions: 0 },
  token: 'bench',
  workspace: 'acc_bench',
  audit: 'none',
  warm: true,
  faults: Number(latencyMs) > 0 ? [{ kind: 'latency', ms: Number(latencyMs) }] : [],
})
console.log(sandbox.url)
