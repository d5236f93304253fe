/** Sends one write and stops itself: while it claims (`claim`), or at the end of the turn in which it claimed (`turn`). */
import { createBilling } from '../../../../core/billing/client.ts'

const [baseUrl = '', when = ''] = process.argv.slice(2)
const billing = createBilling({
  baseUrl,
  workspace: 'acc_1',
  testMode: false,
  token: async () => 'token',
  rate: { requestsPerSecond: Infinity },
})
const freeze = () => process.kill(process.pid, 'SIGSTOP')
const body = { name: 'x'.repeat(50_000) }
await billing.createAddon({ name: 'first' })
process.stdout.write('freezing\n')
const beforeSend = async () => {
  // As a commit: in a later turn than the connection.
  await new Promise((resolve) => setImmediate(resolve))
  if (when === 'claim') freeze()
  else setImmediate(freeze)
}
const ended = await billing.createAddon(body, { beforeSend }).catch((error: unknown) => error)
process.stdout.write(`${ended instanceof Error ? `${ended.name}: ${ended.message}` : 'sent'}\n`)
