/** A process that sends and settles a run until nothing is left; a test kills it at any moment and starts it again. */
import { createBilling } from '../../../../core/billing/client.ts'
import { isChangeKind, changeKinds } from '../../../../core/changes/kinds.ts'
import { createSendRight, runSegment } from '../../../../core/changes/send/segment.ts'
import { openState } from '../../../../core/state/open.ts'
import { acquireLock } from '../../../../core/state/data-folder-lock.ts'

const [folder = '', baseUrl = '', token = '', workspace = '', name = ''] = process.argv.slice(2)
if (!isChangeKind(name)) throw new TypeError(`no such kind: ${name}`)
const kind = changeKinds[name]
const run = 'run-1'

acquireLock({ folder, role: 'sender' })
const { ledger } = await openState({ folder })
const billing = createBilling({
  baseUrl,
  workspace,
  testMode: false,
  token: async () => token,
  rate: { requestsPerSecond: Infinity },
  concurrency: 4,
  timeoutSeconds: 5,
  readWaitMs: () => 1,
})
const { signal } = new AbortController()
const limits = { concurrency: 4, maxFailureShare: 1 }
const attempts = { most: 1, waitsMs: [0] }
console.log('ready')

for (;;) {
  const lease = { name: run, owner: { workflowId: run, runId: run }, attempt: Date.now() }
  const right = createSendRight({ ledger, run, lease })
  const work = { run, kind, limits, canarySize: { size: 0 }, settleMs: 40, attempts }
  const { nextAt } = await runSegment({ ledger, right, billing, breakers: {}, ms: 60_000, signal, ...work })
  if (nextAt === undefined) break
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, nextAt - Date.now() + 1)))
}
process.exit(0)
