import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { createBilling, type BillingSettings } from '../../../core/billing/client.ts'

export interface Seen {
  method: string
  url: string
  headers: IncomingMessage['headers']
  body: string
  /** Which connection it came on, counted from 1. */
  connection: number
}

export type Answer = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void

export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

export const html =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'text/html', ...headers })
    response.end('<html><head><title>Bad Gateway</title></head><body>nginx</body></html>')
  }

export const page = (records: unknown[] = []) =>
  json(200, { count: records.length, results: records, next: null })
/** The connection breaks before a byte of the reply. */
export const reset: Answer = (_response, _seen, request) => request.socket.resetAndDestroy()
/** The reply breaks off in the middle of its body. */
export const cutOff: Answer = (response, _seen, request) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
  response.write('{"count":1,"results":[', () => request.socket.destroy())
}
export const silent: Answer = () => {}

/** A real server that answers one request after the other with `answers`, repeating the last. */
export async function startTinyService(...answers: [Answer, ...Answer[]]) {
  const seen: Seen[] = []
  const connections = new Map<unknown, number>()
  const server = createServer((request, response) => {
    if (!connections.has(request.socket)) connections.set(request.socket, connections.size + 1)
    void text(request).then((body) => {
      const answer = answers[Math.min(seen.length, answers.length - 1)]
      const { method = '', url = '', headers } = request
      const entry = { method, url, headers, body, connection: connections.get(request.socket) ?? 0 }
      seen.push(entry)
      answer?.(response, entry, request)
    })
  })
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    baseUrl,
    seen,
    connections,
    /** Connections that stand now, with or without a request. */
    opened: () => sockets.size,
    closeConnections: () => sockets.forEach((socket) => socket.destroy()),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A client that waits for nothing between its tries. */
export function quickBilling(settings: Partial<BillingSettings> & { baseUrl: string }) {
  return createBilling({
    workspace: 'acc_1',
    testMode: false,
    token: async () => 'secret-token',
    rate: { requestsPerSecond: Number.POSITIVE_INFINITY },
    readWaitMs: () => 0,
    ...settings,
  })
}

/** The reason why a promise was rejected. */
export async function failure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it was expected to fail')
}
