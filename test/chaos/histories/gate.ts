import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/**
 * The network between one worker and the service. It can be cut, as a kill does it: nothing of the worker reaches the
 * service from then on, and what had reached it takes its effect. It can be held, as a freeze does it.
 */
export interface Gate {
  url: string
  /** Calls `listener` at each piece that passes, in either direction. */
  onTraffic: (listener: () => void) => void
  cut: () => void
  hold: () => void
  release: () => void
}

export async function openGate(port: number): Promise<Gate> {
  const sockets = new Set<Socket>()
  let listener = () => {}
  let isHeld = false
  let isCut = false
  const pass = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('data', (piece) => {
      listener()
      if (!isCut) to.write(piece)
    })
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.end()
    })
    if (isHeld) from.pause()
  }
  const server = createServer((near) => {
    if (isCut) return near.destroy()
    const far = connect({ port, host: '127.0.0.1' })
    pass(near, far)
    pass(far, near)
    return undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    onTraffic: (next) => (listener = next),
    cut: () => {
      isCut = true
      server.close()
      for (const socket of sockets) socket.destroy()
    },
    hold: () => {
      isHeld = true
      for (const socket of sockets) socket.pause()
    },
    release: () => {
      isHeld = false
      for (const socket of sockets) socket.resume()
    },
  }
}
