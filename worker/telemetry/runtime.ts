import { Runtime, type Logger, type TelemetryOptions } from '@temporalio/worker'
import { createServer, type AddressInfo } from 'node:net'
import type { LogLevel } from './log.ts'

/** The SDK's own metrics, in the text format of Prometheus. */
export type SdkMetrics = () => Promise<string>

let installed: Promise<SdkMetrics | undefined> | undefined

/**
 * Sets up the SDK's runtime, once per process: the options of a second worker have no effect. Returns the
 * SDK's metrics if requested.
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
  // The SDK serves its own metrics but does not report a port it chose itself. Our server includes them.
  const address = metrics ? `127.0.0.1:${await freePort()}` : undefined
  const least = level.toUpperCase() as Uppercase<LogLevel>
  const telemetryOptions: TelemetryOptions = {
    // Otherwise the SDK's native part would write to stdout, which is reserved for a command's result. At
    // level DEBUG it logs every call, which is unreadable.
    logging: { forward: {}, filter: { core: least === 'DEBUG' ? 'INFO' : least, other: 'WARN' } },
    ...(address !== undefined && { metrics: { prometheus: { bindAddress: address } } }),
  }
  Runtime.install({
    logger,
    telemetryOptions,
    // The command line handles Ctrl-C and SIGTERM; the runtime must not.
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
