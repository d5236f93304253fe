import type { NativeConnection, Worker } from '@temporalio/worker'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { WorkerLock } from '../../core/state/data-folder-lock.ts'
import type { SharedStore } from '../../core/state/open.ts'
import { findWorkers } from '../../core/state/postgres/membership.ts'
import { freeBytes, leastFreeBytes } from '../../core/storage/system-errors.ts'
import { findPollers } from '../temporal-queries.ts'

/** The metrics address is not available; nothing was started. */
export class MetricsAddressError extends Error {
  override readonly name = 'MetricsAddressError'
  readonly exitCode = 2
  readonly hint = 'Set CONNECTOR_METRICS_ADDRESS to another host or port, or remove it.'
}

interface Check {
  ok: boolean
  message: string
}

/** A worker whose health is served. */
export interface Watched {
  /** In the text format of Prometheus. */
  metrics: () => Promise<string>
  dataDir: string
  lock: WorkerLock
  /** The state on PostgreSQL; undefined for one in the data folder. */
  shared: SharedStore | undefined
  /** As Temporal lists it. */
  poller: { namespace: string; taskQueue: string; identity: string }
  /** Undefined while it starts. */
  started: () => { worker: Worker; connection: NativeConnection } | undefined
}

/**
 * Serves `/metrics`, `/healthz` (whether the process is alive) and `/readyz` (whether it can work now, with the result
 * of each check).
 *
 * @throws {MetricsAddressError}
 */
export async function serveHealth(
  address: { host: string; port: number },
  watched: Watched,
): Promise<{ url: string } & AsyncDisposable> {
  const pages: Readonly<Record<string, () => Answer | Promise<Answer>>> = {
    '/metrics': async () => [200, await watched.metrics()],
    '/healthz': () =>
      ['FAILED', 'STOPPED'].includes(watched.started()?.worker.getState() ?? '')
        ? [503, { status: 'the worker has ended' }]
        : [200, { status: 'ok' }],
    '/readyz': async () => {
      const { ready, checks } = await runChecks(checksOf(watched))
      return [ready ? 200 : 503, { ready, checks }]
    },
  }
  const respond = async ({ method, url = '' }: IncomingMessage, response: ServerResponse) => {
    const [path = ''] = url.split('?')
    const [status, body] = await answer(method, Object.hasOwn(pages, path) ? pages[path] : undefined)
    const isText = typeof body === 'string'
    const type = isText ? 'text/plain; version=0.0.4' : 'application/json'
    response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' })
    response.end(isText ? body : `${JSON.stringify(body)}\n`)
  }
  const server = createServer((request, response) => void respond(request, response))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const where = `${address.host}:${address.port}`
      reject(new MetricsAddressError(`Metrics can't be served at ${where} (${cause.code}).`, { cause }))
    })
    server.listen(address.port, address.host, resolve)
  })
  // The port is the actual one: port 0 picks a free one.
  const { address: host, port, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** A text for Prometheus, or a JSON document. */
type Answer = readonly [status: number, body: string | object]

async function answer(
  method: string | undefined,
  page: (() => Answer | Promise<Answer>) | undefined,
): Promise<Answer> {
  if (page === undefined) return [404, { error: 'not found; the paths are /metrics, /healthz and /readyz' }]
  if (method !== 'GET' && method !== 'HEAD') return [405, { error: 'only GET is allowed' }]
  try {
    return await page()
  } catch (error) {
    return [500, { error: toMessage(error) }]
  }
}

const toMessage = (error: unknown) => (error instanceof Error ? error.message : String(error))

function checksOf(watched: Watched): Record<string, () => Promise<Check>> {
  const { dataDir, lock, shared } = watched
  return {
    polling: () => checkPolling(watched),
    lock: () => Promise.resolve(checkLock(lock, dataDir)),
    disk: () => checkDisk(dataDir),
    ...(shared && { state: () => checkState(shared) }),
  }
}

const checkWithinMs = 3_000

/** Runs all checks at once; one that throws or times out has failed. */
async function runChecks(checks: Readonly<Record<string, () => Promise<Check>>>) {
  const running = Object.entries(checks).map(async ([name, run]): Promise<[string, Check]> => {
    const late = { ok: false, message: `no answer in ${checkWithinMs / 1000} s` }
    const checked = run().catch((error: unknown) => ({ ok: false, message: toMessage(error) }))
    return [name, await Promise.race([checked, wait(checkWithinMs, late, { ref: false })])]
  })
  const checked = await Promise.all(running)
  return { ready: checked.every(([, { ok }]) => ok), checks: Object.fromEntries(checked) }
}

/** Whether the server lists this worker as a poller of its task queue; the worker's own state is not enough. */
async function checkPolling({ started, poller }: Watched): Promise<Check> {
  const { worker, connection } = started() ?? {}
  if (worker === undefined || connection === undefined)
    return { ok: false, message: 'the worker is starting' }
  const state = worker.getState()
  if (state !== 'RUNNING') return { ok: false, message: `the worker is ${state.toLowerCase()}` }
  const { namespace, taskQueue, identity } = poller
  const pollers = await connection.withDeadline(Date.now() + 2_000, () =>
    findPollers({ service: connection.workflowService, namespace, taskQueue }),
  )
  const ok = pollers.includes(identity)
  return { ok, message: ok ? `polls ${taskQueue}` : `the Temporal server has not seen it poll ${taskQueue}` }
}

const checkLock = (lock: WorkerLock, dataDir: string): Check =>
  lock.isHeld()
    ? { ok: true, message: `holds ${dataDir}` }
    : { ok: false, message: `the lock of ${dataDir} was removed or replaced: restart the worker` }

/** @throws the state's error if PostgreSQL does not answer */
async function checkState(shared: SharedStore): Promise<Check> {
  const { length } = await findWorkers(shared)
  return {
    ok: true,
    message: `${shared.place} answers; ${length} ${length === 1 ? 'worker uses' : 'workers use'} it`,
  }
}

async function checkDisk(dataDir: string): Promise<Check> {
  const free = await freeBytes(dataDir)
  const message = `${Math.floor(free / 1e6)} MB are free on the disk of ${dataDir}`
  return free < leastFreeBytes
    ? { ok: false, message: `only ${message}: free some space` }
    : { ok: true, message }
}
