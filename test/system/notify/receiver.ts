import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Received {
  status: number
  /** Of the header. */
  id: string | undefined
  body: {
    text: string
    event: { id: string; kind: string; level: string; at: string }
    workspace: string
    mode: string
    run: { workflowId: string; runId: string; type: string; schedule?: string; url?: string }
    summary: string
    command: string
    report: unknown
  }
}

/**
 * A real receiver of notices. `answer` gives the status of each request, counted from 1. What it does not take it
 * repeats the address of, as many servers do.
 */
export async function openChannel(
  answer: (request: number) => number | Promise<number> = () => 200,
  { retryAfter }: { retryAfter?: string } = {},
) {
  const received: Received[] = []
  let requests = 0
  let port = 0
  let server: ReturnType<typeof createServer> | undefined
  const start = async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      const respond = async (number: number, body: Received['body']) => {
        const status = await answer(number)
        received.push({ status, id: request.headers['idempotency-key'] as string | undefined, body })
        const headers = status === 200 || retryAfter === undefined ? {} : { 'retry-after': retryAfter }
        response.writeHead(status, headers)
        response.end(status === 200 ? 'ok' : `invalid_payload: Cannot POST ${request.url}`)
      }
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Received['body']
        requests += 1
        void respond(requests, body)
      })
    }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  const stop = async () => {
    if (server === undefined) return
    const closed = once(server, 'close')
    server.closeAllConnections()
    server.close()
    server = undefined
    await closed
  }
  await start()
  onTestFinished(stop)
  return {
    received,
    url: `http://127.0.0.1:${port}/hooks/secret-of-the-hook`,
    start,
    stop,
    kinds: () => received.filter(({ status }) => status === 200).map(({ body }) => body.event.kind),
  }
}
