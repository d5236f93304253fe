import { type AddressInfo, createServer, type Server } from 'node:net'

/** Finds distinct free ports of 127.0.0.1: all are held open until the last is known. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen()))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

/** Whether nothing listens on a port of 127.0.0.1. */
export async function isFree(port: number): Promise<boolean> {
  const server = await listen(port).catch(() => undefined)
  if (server !== undefined) await new Promise((resolve) => server.close(resolve))
  return server !== undefined
}

function listen(port = 0): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}
