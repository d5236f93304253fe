import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Readiness } from './readiness.ts'

/** The metrics address is not available; nothing was started. */
export class MetricsAddressError extends Error {
  override readonly name = 'MetricsAddressError'
  readonly exitCode = 2
  readonly hint = 'Set CONNECTOR_METRICS_ADDRESS to another host or port, or remove it.'
}

export interface HealthServer {
  /** With the actual port. */
  url: string
  close(): Promise<void>
}

interface Answer {
  status: number
  type: string
  text: string
}

/** Serves `/metrics`, `/healthz` and `/readyz`. @throws {MetricsAddressError} */
export async function startHealthServer(options: {
  address: { host: string; port: number }
  /** In the text format of Prometheus. */
  metrics: () => Promise<string>
  /** Whether the process is alive. */
  isAlive: () => boolean
  readiness: () => Promise<Readiness>
}): Promise<HealthServer> {
  const { address, metrics, isAlive, readiness } = options
  const pages: Readonly<Record<string, () => Promise<Answer>>> = {
    '/metrics': async () => ({ status: 200, type: 'text/plain; version=0.0.4', text: await metrics() }),
    '/healthz': async () =>
      isAlive() ? toJson(200, { status: 'ok' }) : toJson(503, { status: 'the worker has ended' }),
    '/readyz': async () => {
      const result = await readiness()
      return toJson(result.ready ? 200 : 503, result)
    },
  }
  const server = createServer((request, response) => void answer({ request, response, pages }))
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const where = `${address.host}:${address.port}`
      reject(new MetricsAddressError(`Metrics can't be served at ${where} (${cause.code}).`, { cause }))
    })
    server.listen(address.port, address.host, resolve)
  })
  const { address: host, port, family } = server.address() as AddressInfo
  return {
    url: `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

const toJson = (status: number, value: unknown): Answer => ({
  status,
  type: 'application/json',
  text: `${JSON.stringify(value)}\n`,
})

async function answer(options: {
  request: IncomingMessage
  response: ServerResponse
  pages: Readonly<Record<string, () => Promise<Answer>>>
}): Promise<void> {
  const { request, response, pages } = options
  const [path = ''] = (request.url ?? '').split('?')
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined
  const { status, type, text } = await toAnswer(request.method, page)
  response.writeHead(status, { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' })
  response.end(text)
}

async function toAnswer(method: string | undefined, page: (() => Promise<Answer>) | undefined) {
  if (page === undefined)
    return toJson(404, { error: 'not found; the paths are /metrics, /healthz and /readyz' })
  if (method !== 'GET' && method !== 'HEAD') return toJson(405, { error: 'only GET is allowed' })
  try {
    return await page()
  } catch (error) {
    return toJson(500, { error: error instanceof Error ? error.message : String(error) })
  }
}
