import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { postNotification } from '../../../core/notifications/post.ts'

/** A receiver whose answers never end. */
async function endless(status: number) {
  let sent = 0
  const server = createServer((_request, response) => {
    response.writeHead(status, { 'retry-after': '7' })
    const chunk = 'x'.repeat(16_384)
    const more = () => {
      while (!response.destroyed) {
        sent += chunk.length
        if (!response.write(chunk)) return
      }
    }
    response.on('drain', more)
    more()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const delivery = await postNotification({ url, body: {}, id: 'a', signal: AbortSignal.timeout(5_000) })
  return { delivery, sent: () => sent }
}

test.each([
  [200, { outcome: 'delivered' }],
  [300, { outcome: 'refused', why: expect.stringContaining('answered 300') }],
  [
    400,
    { outcome: 'refused', why: expect.stringMatching(/answered 400: an answer of more than 65536 bytes$/) },
  ],
  [503, { outcome: 'later', afterMs: 7_000, why: expect.stringContaining('answered 503') }],
])(
  'of an answer %i without end no more than 64 KiB is awaited, and its status counts',
  async (status, expected) => {
    const { delivery, sent } = await endless(status)
    expect(delivery).toEqual(expected)
    expect(sent()).toBeLessThan(16 * 1024 * 1024)
  },
)

test('a receiver that cannot be reached is notified later, for a reason without its address', async () => {
  const url = 'http://127.0.0.1:9/secret'
  const delivery = await postNotification({ url, body: {}, id: 'a', signal: AbortSignal.timeout(5_000) })
  expect(delivery).toEqual({ outcome: 'later', why: '127.0.0.1:9 did not answer (ECONNREFUSED)' })
})

test('after a stop an answer is awaited for 4 more seconds, so that a worker ends before it is ended by force', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const stop = new AbortController()
  const asked = once(server, 'request')
  const posted = postNotification({ url, body: {}, id: 'a', signal: stop.signal })
  await asked
  const stoppedAt = performance.now()
  stop.abort(new Error('stopped'))
  await expect(posted).rejects.toThrow('stopped')
  const waited = performance.now() - stoppedAt
  expect(waited).toBeGreaterThan(3_900)
  expect(waited).toBeLessThan(5_000)
})
