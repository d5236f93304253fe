import { prepareDataFolder } from '../../worker/data-folder.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { StartDevServer } from '../dev-server/server-place.ts'
import type { DevServer } from '../dev-server/start-dev-server.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Three tries are enough, because a person is waiting. */
const firstLook = { page: 1, pageSize: 1, tries: 3 }

interface LocalServerOptions {
  settings: Settings
  terminal: Terminal
}

/** A Temporal dev server that may still be starting. */
export interface BegunServer {
  server: Promise<DevServer>
}

/**
 * Starts the server of `--local`, if that was given, and resolves when its process runs. A command calls this before it
 * loads Temporal's client and worker, which take longer to load than the server to start. Folder and service are checked
 * before anything is started, so that a wrong token is reported at once.
 *
 * @param needsService - false if no run of this command needs the service, which may then be down
 */
export async function beginLocalServer({
  local,
  needsService = true,
  ...options
}: LocalServerOptions & { local: boolean; needsService?: boolean }): Promise<BegunServer | undefined> {
  if (!local) return undefined
  const { settings } = options
  await prepareDataFolder(settings.dataDir)
  if (needsService) {
    // Loaded late: a command without --local makes no requests to the service.
    const { createCommandService } = await import('../../worker/service.ts')
    const { listResources } = await import('../../core/billing/resources/lists.ts')
    await createCommandService(settings).list({ ...firstLook, resource: listResources.plans })
  }
  const { promise: spawned, resolve: onSpawned } = Promise.withResolvers<void>()
  const server = startLocalServer({ ...options, onSpawned })
  // A failure is that of whoever awaits the server. Another command's server is up without being spawned here.
  await Promise.race([spawned, server.catch(() => undefined)])
  return { server }
}

/** @throws {DevServerError} no server could be started */
export async function startLocalServer({
  settings,
  terminal,
  ...options
}: LocalServerOptions & Pick<StartDevServer, 'choosePorts' | 'onSpawned'>): Promise<DevServer> {
  const { dataDir, temporalCliPath, environment } = settings
  await prepareDataFolder(dataDir)
  const startTask = (title: string) => terminal.task(title)
  const binary = async () => {
    const { findBinary } = await import('../dev-server/find-binary.ts')
    return await findBinary({ cliPath: temporalCliPath, env: environment, startTask })
  }
  // Loaded late: a command without --local starts no server.
  const { startDevServer } = await import('../dev-server/start-dev-server.ts')
  return await startDevServer({ ...options, dataDir, binary })
}
