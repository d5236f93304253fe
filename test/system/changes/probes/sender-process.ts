/** A process that sends and settles a run until nothing is left; a test kills it at any moment and starts it again. */
import { createBilling } from '../../../../core/billing/client.ts'
import { isChangeKind, changeKinds } from '../../../../core/changes/kinds.ts'
import { Sending, createSendRight } from '../../../../core/changes/send/sending.ts'
import { reconcileChanges } from '../../../../core/changes/reconcile/reconcile.ts'
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
  const sending = await Sending.begin({ ledger, right, billing, breakers: {}, signal, ...work })
  await sending.send(60_000)
  const { unknown, reconciled, nextLookupAt } = await reconcileChanges({
    ledger,
    ...work,
    billing,
    concurrency: 2,
    timeBoxMs: 60_000,
  })
  if (unknown === 0 && reconciled.staged === 0) break
  const ms = Math.max(0, (nextLookupAt ?? 0) - Date.now() + 1)
  await new Promise((resolve) => setTimeout(resolve, ms))
}
process.exit(0)
