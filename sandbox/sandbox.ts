import { Control } from './control.ts'
import type { SandboxOptions } from './options.ts'
import { createHttpServer } from './server.ts'
import { createService } from './service.ts'

/** A running stand-in for the billing service. */
export interface Sandbox {
  /** The base address for clients: `http://127.0.0.1:<port>`, unless another host is set. */
  url: string
  port: number
  /** The token that clients must send. */
  token: string
  workspace: string
  control: Control
  /** Closes every connection and cancels timers and late effects. */
  close(): Promise<void>
}

/**
 * Starts a small, faithful, stateful stand-in for the billing service on 127.0.0.1 that behaves like Django
 * REST framework. The same options give the same data; random choices follow the seed and the order of
 * requests.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const service = createService(options)
  const control = new Control(service)
  const server = createHttpServer(service, control)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(service.settings.port, service.settings.host, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('sandbox: no port was opened')
  const { host } = service.settings
  return {
    url: `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${address.port}`,
    port: address.port,
    token: service.settings.token,
    workspace: service.settings.workspace,
    control,
    close: async () => {
      service.drifter.close()
      service.later.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}
