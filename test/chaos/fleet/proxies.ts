import { once } from 'node:events'
import { Agent, createServer, request as requestHttp } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'

/**
 * In front of the service: closes a connection that has been idle for so long, as load balancers do, and
 * answers nobody while the service is away. A request whose client is gone is carried out all the same.
 */
export async function startServiceProxy({ url, idleMs }: { url: string; idleMs: number }) {
  const agent = new Agent({ keepAlive: true })
  const proxy = { isAway: false }
  const server = createServer({ connectionsCheckingInterval: 100 }, (incoming, response) => {
    const { method, headers } = incoming
    const outgoing = requestHttp(new URL(incoming.url ?? '/', url), { method, headers, agent }, (reply) => {
      if (proxy.isAway) response.destroy()
      else reply.pipe(response.writeHead(reply.statusCode ?? 502, reply.headers))
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  })
  server.on('connection', (socket: Socket) => {
    if (proxy.isAway) socket.destroy()
  })
  server.keepAliveTimeout = idleMs
  server.headersTimeout = idleMs
  server.requestTimeout = idleMs + 30_000
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    setAway(isAway: boolean) {
      proxy.isAway = isAway
      if (isAway) server.closeIdleConnections()
    },
    close: () => {
      server.closeAllConnections()
      server.close()
      agent.destroy()
    },
  }
}

/** In front of Temporal, for one worker: while it is deaf, nothing passes in either direction. */
export async function startTemporalProxy(address: string) {
  const [host = '', port = ''] = address.split(':')
  const sockets = new Set<Socket>()
  const proxy = { isDeaf: false }
  const forward = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('data', (data) => to.write(data))
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    if (proxy.isDeaf) from.pause()
  }
  const server = createTcpServer((client) => {
    const upstream = connect(Number(port), host)
    forward(client, upstream)
    forward(upstream, client)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    setDeaf(isDeaf: boolean) {
      proxy.isDeaf = isDeaf
      for (const socket of sockets) {
        if (isDeaf) socket.pause()
        else socket.resume()
      }
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
