import type { NativeConnection, Worker } from '@temporalio/worker'
import type { Check } from './readiness.ts'

/** A poll waits up to a minute; a poller not seen for longer has stopped. */
const seenWithinMs = 90_000

/**
 * Whether the server lists this worker as a poller of its task queue; the worker's own state is not enough.
 */
export async function checkPolling(options: {
  /** Undefined while the worker starts. */
  worker?: Worker
  connection?: NativeConnection
  namespace: string
  taskQueue: string
  identity: string
}): Promise<Check> {
  const { worker, connection, namespace, taskQueue, identity } = options
  if (worker === undefined || connection === undefined)
    return { ok: false, message: 'the worker is starting' }
  const state = worker.getState()
  if (state !== 'RUNNING') return { ok: false, message: `the worker is ${state.toLowerCase()}` }
  const ask = () =>
    connection.workflowService.describeTaskQueue({ namespace, taskQueue: { name: taskQueue } })
  const { pollers } = await connection.withDeadline(Date.now() + 2_000, ask)
  const seen = (pollers ?? [])
    .filter((poller) => poller.identity === identity)
    .map(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000)
  const ok = seen.some((at) => at > Date.now() - seenWithinMs)
  return { ok, message: ok ? `polls ${taskQueue}` : `the Temporal server has not seen it poll ${taskQueue}` }
}
