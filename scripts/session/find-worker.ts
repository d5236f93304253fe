import type { Client } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PayloadKey } from '../../worker/settings/kinds.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { type ListedWorker, parseWorkerIdentity } from '../../worker/identity.ts'
import { RefusedError } from '../terminal/failures.ts'
import { addressOf, type TemporalPlace } from './temporal-place.ts'
import { toTemporalRefusal } from './temporal-refusal.ts'
import { connector } from '../../core/runs/view/shell.ts'

/** How long a worker may take from its start to its first poll, in ms: Temporal lists it from then on. */
const firstPollMs = 2_000

/**
 * Finds the worker on the task queue, also one that has only just started. Temporal lists a worker for minutes after it
 * stopped, so one with other keys may be about to be replaced.
 *
 * @throws {RefusedError} none listens, or it has other keys
 */
export async function awaitWorker(
  options: Asked & { hasLocal: boolean; withinMs?: number },
): Promise<ListedWorker> {
  const { withinMs = firstPollMs } = options
  let refusal: RefusedError | undefined
  for (const until = performance.now() + withinMs; performance.now() < until; await sleep(50)) {
    const worker = await findWorker(options)
    if (worker === undefined) continue
    refusal = refusalOfKeys({ worker, own: options.settings.payloadKeys })
    if (refusal === undefined) return worker
  }
  if (refusal !== undefined) throw refusal
  throw new RefusedError(`No worker listens on the task queue ${options.settings.taskQueue}.`, {
    hint: `Start one with \`${connector`up`}\`${options.hasLocal ? ',' : ' or'} \`${connector`worker`}\`${options.hasLocal ? ', or add --local' : ''}.`,
  })
}

/** Undefined if this command and the worker can read each other's encrypted payloads. */
export function refusalOfKeys(of: {
  worker: ListedWorker
  own: readonly PayloadKey[]
}): RefusedError | undefined {
  const { worker, own } = of
  const [theirs] = worker.keyIds
  const [ours] = own.map(({ id }) => id)
  const isRead = theirs === undefined || own.some(({ id }) => id === theirs)
  if (isRead && (ours === undefined || worker.keyIds.includes(ours))) return undefined
  const keyOf = (id: string | undefined) => (id === undefined ? 'no key' : `the key ${id}`)
  return new RefusedError(
    `The worker encrypts what Temporal keeps with ${keyOf(theirs)}, and this command with ${keyOf(ours)}.`,
    { hint: 'Give both the same CONNECTOR_PAYLOAD_KEY_FILE. Nothing was started.' },
  )
}

interface Asked {
  client: Client
  settings: Settings
  place: Pick<TemporalPlace, 'connectionOptions' | 'namespace'>
}

/** Finds the worker on the task queue, as it reports itself; undefined if there is none. */
export async function findWorker(options: Asked): Promise<ListedWorker | undefined> {
  const { client, settings, place } = options
  const { namespace } = place
  const { pollers } = await client.workflowService
    .describeTaskQueue({ namespace, taskQueue: { name: settings.taskQueue } })
    .catch((cause: unknown) => {
      throw toTemporalRefusal(cause, { address: addressOf(place), namespace }) ?? cause
    })
  const seen = (pollers ?? []).toSorted(
    (a, b) => Number(b.lastAccessTime?.seconds) - Number(a.lastAccessTime?.seconds),
  )
  return seen.map((poller) => parseWorkerIdentity(poller.identity ?? '')).find((one) => one !== undefined)
}
