import { connector } from '../../core/runs/view/shell.ts'
import type { Client } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import { listResources } from '../../core/billing/resources/lists.ts'
import { prepareDataFolder } from '../../worker/data-folder.ts'
import { createCommandService } from '../../worker/service.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { findBinary } from '../dev-server/find-binary.ts'
import { type DevServer, startDevServer, type StartDevServer } from '../dev-server/start-dev-server.ts'
import { tellIfSlow, type Terminal } from '../terminal/terminal.ts'
import type { Session, SessionOptions } from './session.ts'
import { connect, devServerPlace } from './temporal.ts'

/** In ms. A worker that has lost its server cannot announce that it stops; requests in flight may still be answered. */
export const lostServerGraceMs = 2_000

/** Three tries are enough, because a person is waiting. */
const firstLook = { page: 1, pageSize: 1, tries: 3 }

/** Takes as long as the server to start, so it is loaded meanwhile; commands without --local never load it. */
const loadWorker = () => import('../../worker/start-worker.ts')

export interface LocalSessionOptions extends SessionOptions {
  /** Whether a run may write to the service through this session's worker. Default: none may. */
  mayWrite?: (workflowId: string) => boolean
  /** False if no run of this command needs the service, which may then be down. */
  needsService?: boolean
}

/**
 * Opens the session of `--local`: a Temporal dev server and a worker for this command, on the data folder. Folder and
 * service are checked before anything is started, so that a wrong token is reported at once.
 *
 * @throws {ServerInUseError} another command has a dev server on this data folder
 * @throws {DevServerError} no server could be started, or it ended
 */
export async function openLocalSession(options: LocalSessionOptions): Promise<Session> {
  const { settings, terminal, needsService = true } = options
  await prepareDataFolder(settings.dataDir)
  if (needsService)
    await tellIfSlow({
      terminal,
      line: `Waiting for the service at ${settings.billing.baseUrl} ...`,
      work: createCommandService(settings).list({ ...firstLook, resource: listResources.plans }),
    })
  await using opened = new AsyncDisposableStack()
  const onSpawned = () => void loadWorker().catch(() => undefined)
  const server = await startLocalServer({ settings, terminal, onSpawned })
  opened.defer(() => server.stop())
  const { client, worker } = await server.during(async () => ({
    client: await connect(devServerPlace(server, settings.payloadKeys), terminal),
    worker: await startLocalWorker({ ...options, server }),
  }))
  opened.defer(async () => {
    const closed = Promise.allSettled([worker.stop(), client.connection.close()])
    await (server.lost.aborted ? Promise.race([closed, sleep(lostServerGraceMs)]) : closed)
  })
  const workerLost = new AbortController()
  worker.ended.catch((error: unknown) => workerLost.abort(error))
  terminal.note(`Temporal UI: ${server.uiUrl}`)
  await noteUnfinishedWrites({ ...options, client })
  const resources = opened.move()
  return {
    client,
    identity: worker.identity,
    uiUrl: server.uiUrl,
    lost: AbortSignal.any([server.lost, workerLost.signal]),
    close: () => resources.disposeAsync(),
    async detach() {
      await server.stop()
      return 'waits'
    },
  }
}

/** @throws {ServerInUseError} @throws {DevServerError} */
export async function startLocalServer(
  options: { settings: Settings; terminal: Terminal } & Pick<StartDevServer, 'uiPort' | 'onSpawned'>,
): Promise<DevServer> {
  const { settings, terminal, ...rest } = options
  const { dataDir, environment: env } = settings
  await prepareDataFolder(dataDir)
  const binary = () => findBinary({ env, startTask: (title) => terminal.task(title) })
  return await startDevServer({ ...rest, dataDir, binary })
}

async function startLocalWorker(options: LocalSessionOptions & { server: DevServer }) {
  const { settings, server, mayWrite = () => false } = options
  const { startWorker } = await loadWorker()
  return await startWorker({ settings, temporal: devServerPlace(server, settings.payloadKeys), mayWrite })
}

/** Names the runs that write to the service, have not ended, and do not resume through this session. */
async function noteUnfinishedWrites(options: LocalSessionOptions & { client: Client }): Promise<void> {
  const { settings, terminal, client, mayWrite = () => false } = options
  const types = "WorkflowType IN ('importFile', 'recoverSubscriptions')"
  const query = `${types} AND ExecutionStatus = 'Running' AND TaskQueue = '${settings.taskQueue}'`
  for await (const { workflowId } of client.workflow.list({ query }))
    if (!mayWrite(workflowId))
      terminal.note(
        `The unfinished run ${workflowId} does not resume here. Repeat its own command, or start \`${connector`up`}\`, to resume it.`,
      )
}
