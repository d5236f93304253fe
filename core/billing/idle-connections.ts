import { once } from 'node:events'
import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connectionOptions } from './connections.ts'

/** After how long the service closed a connection, in ms; undefined if it had not within the time. */
interface IdleTimes {
  /** One on which nothing was ever sent. */
  unused: number | undefined
  /** One that has answered a request. */
  used: number | undefined
}

/** Measures how long the service keeps idle connections: one of each kind is opened and left alone. */
export async function measureIdleConnections(options: { url: string; withinMs: number }): Promise<IdleTimes> {
  const { url } = options
  const isTls = url.startsWith('https:')
  const keep = { ...connectionOptions({ url, maxConnections: 2, keepAlive: true }) }
  const agent = isTls ? new PatientHttpsAgent(keep) : new PatientHttpAgent(keep)
  const open = () =>
    (isTls ? requestHttps : requestHttp)(url, { agent, headers: { 'user-agent': 'billing-connector' } })
  try {
    const [unused, used] = await Promise.all([
      connected(open()).then((socket) => untilClosed(socket, options)),
      answered(open()).then((socket) => untilClosed(socket, options)),
    ])
    return { unused, used }
  } finally {
    agent.destroy()
  }
}

type Request = ReturnType<typeof requestHttp>

/** The connection of a request that is never sent. */
async function connected(request: Request): Promise<Socket> {
  request.on('error', () => {})
  const [socket] = (await once(request, 'socket')) as [Socket]
  return socket
}

/** The connection of a request that was answered, whatever the answer. */
async function answered(request: Request): Promise<Socket> {
  const [response] = (await once(request.end(), 'response')) as [NodeJS.ReadableStream & { socket: Socket }]
  const { socket } = response
  await once(response.resume(), 'end')
  return socket
}

async function untilClosed(socket: Socket, { withinMs }: { withinMs: number }): Promise<number | undefined> {
  const begun = performance.now()
  if (socket.destroyed) return 0
  socket.on('error', () => {})
  const closed = once(socket, 'close').then(() => performance.now() - begun)
  return await Promise.race([closed, wait(withinMs, undefined, { ref: false })])
}

/** Node's agents close a connection a second before the service says that it would. */
class PatientHttpAgent extends HttpAgent {
  override keepSocketAlive(): boolean {
    return true
  }
}

class PatientHttpsAgent extends HttpsAgent {
  override keepSocketAlive(): boolean {
    return true
  }
}
