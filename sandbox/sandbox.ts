import { Control } from './control.ts'
import type { SandboxOptions } from './options.ts'
import { createHttpServer } from './server.ts'
import { createService } from './service.ts'

/** A running stand-in of the billing service. */
export interface Sandbox {
  /** `http://127.0.0.1:<port>`, unless another host is set: the base address for clients. */
  url: string
  port: number
  /** What a client has to send. */
  token: string
  workspace: string
  control: Control
  /** Ends every connection, timer and late effect. */
  close(): Promise<void>
}

/**
 * Starts a small, true, stateful stand-in of the billing service on 127.0.0.1, with the manners of Django REST
 * framework. Same options, same data; what is left to chance follows the seed and the order of the requests.
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
