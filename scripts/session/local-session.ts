import type { Client } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import { FolderLockedError } from '../../core/state/errors.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { RunningWorker } from '../../worker/start-worker.ts'
import { keepRuns } from '../dev-server/keep-runs.ts'
import { localChannel } from '../dev-server/readiness.ts'
import type { DevServer } from '../dev-server/start-dev-server.ts'
import { findWorker, refusalOfKeys } from './find-worker.ts'
import { beginLocalServer, type BegunServer, startLocalServer } from './local-server.ts'
import { OwnerEnded, type Session, type SessionOptions } from './session.ts'
import { connect } from './temporal-place.ts'

/** In ms. A command that has just locked the folder starts its worker within a second or two. */
const workerWithinMs = 5_000

const checkEveryMs = 250

/** In ms. Requests in flight may still be answered. */
export const lostServerGraceMs = 2_000

/** Takes as long as the server to start, so it is loaded meanwhile; commands without --local never load it. */
const loadWorker = () => import('../../worker/start-worker.ts')

export interface LocalSessionOptions extends SessionOptions {
  /** Whether a run may write to the service through this session's worker. Default: none may. */
  mayWrite?: (workflowId: string) => boolean
  /** False if no run of this command needs the service, which may then be down. */
  needsService?: boolean
  /** The server, if the command has begun to start it. */
  begun?: BegunServer | undefined
}

/**
 * Opens the session of `--local`: a Temporal dev server and a worker for this command, on the data folder. If
 * another command already runs them for this folder, shares them, and `serverLost` aborts when that command ends.
 */
export async function openLocalSession(options: LocalSessionOptions): Promise<Session> {
  const begun = options.begun ?? (await beginLocalServer({ ...options, local: true }))
  void loadWorker().catch(() => undefined)
  for (let starting = begun?.server; ; starting = undefined) {
    const server = await (starting ?? startLocalServer(options))
    try {
      return await onServer(server, () => openOn({ ...options, server }))
    } catch (error) {
      await server.stop()
      // If the command that ran the server has ended in the meantime, the next iteration starts one.
      if (!server.isAbandoned()) throw error
    }
  }
}

/**
 * Runs work that needs the server, and repeats it if the server ended in the meantime: the server is restarted, and
 * connections to the old one are not worth keeping.
 *
 * @throws {DevServerError} the server cannot be restarted
 * @throws the error of `work`, if the server is up
 */
export async function onServer<T>(server: DevServer, work: () => Promise<T>): Promise<T> {
  for (;;) {
    const { pid } = server
    try {
      return await work()
    } catch (error) {
      await server.ready()
      if (server.pid === pid) throw error
    }
  }
}

async function openOn(options: LocalSessionOptions & { server: DevServer }): Promise<Session> {
  const { terminal, server } = options
  await using opened = new AsyncDisposableStack()
  const client = opened.adopt(await connect(localPlace(server, options.settings)), (one) =>
    one.connection.close(),
  )
  const starting = Promise.all([startOrFindWorker({ ...options, client }), keepRuns(server)])
  const worker = opened.adopt((await starting)[0], (one) =>
    // `serverLost` gives the reason why a worker ended by itself.
    one.stop().catch(() => undefined),
  )
  terminal.note(`Temporal UI: ${server.uiUrl}`)
  const watch = watchServer({ server, worker })
  const rest = opened.move()
  return {
    client,
    identity: worker.identity,
    uiUrl: server.uiUrl,
    serverLost: watch.serverLost,
    async close() {
      watch.end()
      // A worker that has lost its server cannot announce that it stops.
      const closed = rest.disposeAsync()
      await (server.lost.aborted ? Promise.race([closed, sleep(lostServerGraceMs)]) : closed)
      // Asked to end, it takes a second. It has written every step to its log, so that killing it loses nothing.
      await server.stop({ graceMs: 0 })
    },
    async detach() {
      await server.stop({ graceMs: 0 })
      return server.origin === 'shared' ? 'continues' : 'waits'
    },
  }
}

export const localPlace = (server: DevServer, settings: Settings) => ({
  connectionOptions: { address: server.address, ...localChannel },
  namespace: 'default',
  uiUrl: server.uiUrl,
  payloadKeys: settings.payloadKeys,
  local: { comesBack: () => !server.lost.aborted && !server.isAbandoned() },
})

/** Starts a worker for this command; if another process has locked the folder, finds its worker on this server. */
async function startOrFindWorker(options: LocalSessionOptions & { client: Client; server: DevServer }) {
  const { settings, terminal, client, server, mayWrite = () => false } = options
  const place = localPlace(server, settings)
  const { startWorker } = await loadWorker()
  let worker: RunningWorker
  try {
    worker = await startWorker({ settings, temporal: place, mayWrite })
  } catch (error) {
    if (!(error instanceof FolderLockedError)) throw error
    for (const until = performance.now() + workerWithinMs; performance.now() < until;) {
      const find = () => findWorker({ client, settings, place })
      // The deadline prevents a much longer wait if the server is lost in the meantime.
      const found = await client.withDeadline(Date.now() + checkEveryMs, find).catch(() => undefined)
      if (found !== undefined) {
        const refusal = refusalOfKeys({ worker: found, own: settings.payloadKeys })
        if (refusal !== undefined) throw refusal
        const { identity } = found
        return { identity, ended: new Promise<void>(() => undefined), stop: () => Promise.resolve() }
      }
      await sleep(checkEveryMs)
    }
    // That worker listens on another Temporal server, or for another workspace.
    throw error
  }
  for await (const run of unfinishedWrites({ client, settings }))
    if (!mayWrite(run))
      terminal.note(
        `The unfinished run ${run} does not resume here. Repeat its own command, or start \`connector up\`, to resume it.`,
      )
  return worker
}

/** Lists the runs that write to the service and have not ended. */
async function* unfinishedWrites({
  client,
  settings,
}: {
  client: Client
  settings: SessionOptions['settings']
}) {
  const types = "WorkflowType IN ('importFile', 'recoverSubscriptions')"
  const query = `${types} AND ExecutionStatus = 'Running' AND TaskQueue = '${settings.taskQueue}'`
  for await (const { workflowId } of client.workflow.list({ query })) yield workflowId
}

/** Aborts when the server or the worker of a session is lost for good. */
function watchServer({ server, worker }: { server: DevServer; worker: Pick<RunningWorker, 'ended'> }) {
  const serverLost = new AbortController()
  const timer = setInterval(() => {
    if (server.isAbandoned()) serverLost.abort(new OwnerEnded())
  }, checkEveryMs)
  server.lost.addEventListener('abort', () => serverLost.abort(server.lost.reason), { once: true })
  worker.ended.catch((error: unknown) => serverLost.abort(error))
  return { serverLost: serverLost.signal, end: () => clearInterval(timer) }
}
