import { Runtime, type Logger, type TelemetryOptions } from '@temporalio/worker'
import { createServer, type AddressInfo } from 'node:net'
import type { LogLevel } from './log.ts'

/** The SDK's own metrics, in the text format of Prometheus. */
export type SdkMetrics = () => Promise<string>

let installed: Promise<SdkMetrics | undefined> | undefined

/**
 * Sets up the SDK's runtime, once a process: what a second worker of it asks for comes too late. Gives the SDK's
 * metrics where they were asked for.
 */
export function installRuntime(options: {
  logger: Logger
  level: LogLevel
  metrics: boolean
}): Promise<SdkMetrics | undefined> {
  installed ??= install(options)
  return installed
}

async function install({ logger, level, metrics }: Parameters<typeof installRuntime>[0]) {
  // The SDK serves its metrics by itself and tells no port that it chose. Ours are served with them.
  const address = metrics ? `127.0.0.1:${await freePort()}` : undefined
  const least = level.toUpperCase() as Uppercase<LogLevel>
  const telemetryOptions: TelemetryOptions = {
    // Else the SDK's native part would write to stdout, where only a command's result belongs. It has a line for
    // each call at the level DEBUG, which nobody of us can read.
    logging: { forward: {}, filter: { core: least === 'DEBUG' ? 'INFO' : least, other: 'WARN' } },
    ...(address !== undefined && { metrics: { prometheus: { bindAddress: address } } }),
  }
  Runtime.install({
    logger,
    telemetryOptions,
    // The command line decides what Ctrl-C and SIGTERM mean; the runtime must not do it a second time.
    shutdownSignals: [],
  })
  return address === undefined ? undefined : () => read(`http://${address}/metrics`)
}

async function read(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
  return await response.text()
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
