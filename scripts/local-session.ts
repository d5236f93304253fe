import type { Client } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import { listResources } from '../billing/resources/lists.ts'
import { FolderLockedError } from '../state/errors.ts'
import { prepareDataFolder } from '../worker/data-folder.ts'
import { createService } from '../worker/service.ts'
import { startWorker, type RunningWorker } from '../worker/start-worker.ts'
import { findBinary } from './dev-server/find-binary.ts'
import { keepRuns } from './dev-server/keep-runs.ts'
import { localChannel } from './dev-server/readiness.ts'
import { startDevServer, type DevServer } from './dev-server/start-dev-server.ts'
import { connect, findWorker, OwnerEnded, type Session, type SessionOptions } from './session.ts'

/** Somebody waits for the first answer: what does not come in three tries is told. */
const firstLook = { resource: listResources.plans, page: 1, pageSize: 1, tries: 3 }

/** A command that has just taken the folder listens within a second or two. */
const workerWithinMs = 5_000

const lookEveryMs = 250

/** Requests in flight may still be answered. */
export const lostServerGraceMs = 2_000

export interface LocalSessionOptions extends SessionOptions {
  /** The runs that may write to the service here; none where it is left out. */
  mayWrite?: (workflowId: string) => boolean
  /** False where no run of this command asks the service, which may then be away. */
  needsService?: boolean
}

/**
 * `--local`: a Temporal dev server and a worker for this command, on the data folder. What another command runs for
 * the folder is used, and `gone` tells when that command has ended and left it. Folder and service are looked at
 * before anything is started, so that a wrong token costs no minutes.
 */
export async function openLocalSession(options: LocalSessionOptions): Promise<Session> {
  const { settings, needsService = true } = options
  await prepareDataFolder(settings.dataDir)
  if (needsService) await createService(settings).list(firstLook)
  for (;;) {
    const server = await startLocalServer(options)
    try {
      return await onServer(server, () => openOn({ ...options, server }))
    } catch (error) {
      await server.stop()
      // When the command whose server it was has ended meanwhile, the next turn starts one.
      if (!server.isAbandoned()) throw error
    }
  }
}

/**
 * Does what needs the server, again when that ended meanwhile: it is started again, and nothing that was connected to
 * it half is worth keeping.
 * @throws {DevServerError} when it cannot be started again, and what `work` throws on a server that lives
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
  const client = opened.adopt(await connect(localPlace(server)), (one) => one.connection.close())
  const worker = opened.adopt(await startOrFindWorker({ ...options, client }), (one) =>
    // `gone` says why a worker ended by itself.
    one.stop().catch(() => undefined),
  )
  terminal.note(`Temporal UI: ${server.uiUrl}`)
  const watch = watchServer({ server, worker })
  const rest = opened.move()
  return {
    client,
    identity: worker.identity,
    uiUrl: server.uiUrl,
    gone: watch.gone,
    async close() {
      watch.end()
      // A worker that has lost its server cannot tell it that it stops.
      const closed = rest.disposeAsync()
      await (server.lost.aborted ? Promise.race([closed, sleep(lostServerGraceMs)]) : closed)
      await server.stop()
    },
    async letGo() {
      await server.stop({ graceMs: 0 })
      return server.origin === 'shared' ? 'goes on' : 'waits'
    },
  }
}

export async function startLocalServer({ settings, terminal }: SessionOptions): Promise<DevServer> {
  const { dataDir, temporalCliPath, environment } = settings
  await prepareDataFolder(dataDir)
  const startTask = (title: string) => terminal.task(title)
  const binary = () => findBinary({ cliPath: temporalCliPath, env: environment, startTask })
  const server = await startDevServer({ dataDir, binary })
  // Whoever has the server set it so; that it could not be set now is no reason to go without one.
  if (server.origin !== 'shared') await keepRuns(server).catch(() => undefined)
  return server
}

export const localPlace = (server: DevServer) => ({
  connectionOptions: { address: server.address, ...localChannel },
  namespace: 'default',
  uiUrl: server.uiUrl,
  local: { comesBack: () => !server.lost.aborted && !server.isAbandoned() },
})

/** A worker of this command; where another process has the folder, the one that listens for it on this server. */
async function startOrFindWorker(options: LocalSessionOptions & { client: Client; server: DevServer }) {
  const { settings, terminal, client, server, mayWrite = () => false } = options
  const place = localPlace(server)
  let worker: RunningWorker
  try {
    worker = await startWorker({ settings, temporal: place, mayWrite })
  } catch (error) {
    if (!(error instanceof FolderLockedError)) throw error
    for (const until = performance.now() + workerWithinMs; performance.now() < until;) {
      const look = () => findWorker({ client, settings, place })
      // A server that goes away meanwhile would be waited for much longer.
      const identity = await client.withDeadline(Date.now() + lookEveryMs, look).catch(() => undefined)
      if (identity !== undefined)
        return { identity, ended: new Promise<void>(() => undefined), stop: () => Promise.resolve() }
      await sleep(lookEveryMs)
    }
    // It listens to another Temporal, or for another workspace.
    throw error
  }
  for await (const run of unfinishedWrites({ client, settings }))
    if (!mayWrite(run))
      terminal.note(
        `The unfinished run ${run} is left as it is. Its own command, or \`connector up\`, goes on with it.`,
      )
  return worker
}

/** Runs that write to the service and have not ended. */
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

/** Notices when the server or the worker of a session is gone for good. */
function watchServer({ server, worker }: { server: DevServer; worker: Pick<RunningWorker, 'ended'> }) {
  const gone = new AbortController()
  const timer = setInterval(() => {
    if (server.isAbandoned()) gone.abort(new OwnerEnded())
  }, lookEveryMs)
  server.lost.addEventListener('abort', () => gone.abort(server.lost.reason), { once: true })
  worker.ended.catch((error: unknown) => gone.abort(error))
  return { gone: gone.signal, end: () => clearInterval(timer) }
}
