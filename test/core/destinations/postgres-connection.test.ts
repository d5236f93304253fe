import { once } from 'node:events'
import { createServer, Socket, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'

test('a warehouse that is silent for a minute, as in a long statement, is asked whether its connection is still there', async () => {
  const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const probes = vi.spyOn(Socket.prototype, 'setKeepAlive')
  onTestFinished(() => probes.mockRestore())
  const { port } = server.address() as AddressInfo
  const destination = createPostgresDestination({ url: `postgres://user:word@127.0.0.1:${port}/warehouse` })
  const owner = { workspace: 'acc_1', baseUrl: 'http://127.0.0.1', testMode: false }
  await expect(destination.tryOut(owner)).rejects.toThrow("Can't reach PostgreSQL")
  const [enabled, firstAfterMs = 0] = probes.mock.calls[0]!
  expect(enabled).toBe(true)
  // With 0, the system's two hours hold.
  expect(firstAfterMs).toBeGreaterThan(0)
  expect(firstAfterMs).toBeLessThanOrEqual(60_000)
})
