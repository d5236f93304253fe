import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { sendWithinMs } from '../../../core/billing/transport.ts'
import { failure, json, quickBilling, startTinyService } from './tiny-service.ts'

it('a write that times out while it is claimed fails once its claim has ended, and has certainly not been sent', async () => {
  await using service = await startTinyService(json(201, {}))
  const billing = quickBilling({ baseUrl: service.baseUrl, timeoutSeconds: 0.1 })
  const claim = { ended: false }
  const beforeSend = async () => {
    await sleep(200)
    claim.ended = true
  }
  expect(await failure(billing.createAddon({}, { beforeSend }))).toMatchObject({
    name: 'Unreachable',
    effect: 'none',
  })
  expect(claim.ended).toBe(true)
  expect(service.seen).toHaveLength(0)
})

it.each([
  ['the monotonic clock stands still, as in a suspended machine', Date, false],
  ['the wall clock was set back', performance, false],
  ['its connection is a new one', performance, true],
])(
  'a write whose claim takes longer than two seconds is not sent, also where %s',
  async (_, running, fresh) => {
    await using service = await startTinyService(json(201, { id: '1' }))
    const billing = quickBilling({ baseUrl: service.baseUrl })
    await billing.createAddon({})
    const now = running.now.bind(running)
    const beforeSend = () => void vi.spyOn(running, 'now').mockImplementation(() => now() + sendWithinMs + 1)
    const failed = await failure(billing.createAddon({}, { beforeSend, freshConnection: fresh }))
    vi.restoreAllMocks()
    expect(failed).toMatchObject({ name: 'SentTooLate', effect: 'none', retryable: true })
    await billing.createAddon({})
    expect(service.seen).toHaveLength(2)
  },
)

it('a write that is aborted while its connection is being established is never claimed', async () => {
  const stop = new AbortController()
  const reason = new Error('the run is stopped')
  // It accepts the connection, and TLS never begins.
  const server = createServer((socket) => {
    socket.on('error', () => {})
    stop.abort(reason)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const billing = quickBilling({ baseUrl: `https://127.0.0.1:${port}` })
  let claims = 0
  const beforeSend = () => void (claims += 1)
  expect(await failure(billing.createAddon({}, { beforeSend, signal: stop.signal }))).toBe(reason)
  server.close()
  // Its connection is closed, too.
  await once(server, 'close')
  expect(claims).toBe(0)
})

it('a timeout that is not a whole number of milliseconds stops no write', async () => {
  await using service = await startTinyService(json(201, { id: '1' }))
  const billing = quickBilling({ baseUrl: service.baseUrl, timeoutSeconds: 2.01 })
  expect(await billing.createAddon({}, { beforeSend: () => {} })).toEqual({ id: '1' })
})

it('a write whose connection carries a reply before the request is not sent', async () => {
  const seen: string[] = []
  const server = createServer((socket) => {
    socket.on('data', (data) => seen.push(String(data)))
    socket.on('error', () => {})
    socket.write('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const billing = quickBilling({ baseUrl: `http://127.0.0.1:${port}`, timeoutSeconds: 2 })
  const beforeSend = () => sleep(50)
  expect(await failure(billing.createAddon({}, { beforeSend }))).toMatchObject({
    name: 'Unreachable',
    effect: 'none',
  })
  expect(seen).toEqual([])
  server.close()
})
