import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { connectTemporal, createWorld, startTestWorker, type World } from '../export/world.ts'
import {
  breakSome,
  idsOf,
  quick,
  recoveryCsv,
  resumesAsked,
  resumesDone,
  startRecovery,
  well,
} from './world.ts'

/** A proxy before the service, which calls `before` with the subscription of each resume before it passes it on. */
async function startProxy(world: World, before: (id: string) => void): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming
    const [, id] = /\/subscriptions\/([^/]+)\/resume\/$/.exec(url) ?? []
    if (method === 'POST' && id !== undefined) before(id)
    const passed = request(`${world.sandbox.url}${url}`, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(outgoing)
    })
    passed.on('error', () => outgoing.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a recovery that the service itself always overtakes finds each subscription already fine or gone, and its canary has not failed', async () => {
  const world = await createWorld(well)
  const ids = idsOf(world).slice(0, 12)
  const cancelled = ids.slice(0, 2)
  const url = await startProxy(world, (id) =>
    world.sandbox.control.update({
      resource: 'subscriptions',
      id,
      fields: {
        status: cancelled.includes(id) ? 'cancelled' : 'active',
        needs_attention: null,
        needs_attention_reason: null,
      },
    }),
  )
  await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3', BILLING_BASE_URL: url })
  breakSome(world, { ids, reason: 'gateway_issue' })
  const client = await connectTemporal()
  const run = await startRecovery({ client, world, input: { ...quick, canary: 3 } })
  const result = await run.result()
  expect(result).toMatchObject({
    verdict: 'proven',
    outcomes: { alreadyFine: 10, gone: 2 },
    summary: '0 of 12 recovered; 10 already fine; 2 cancelled or finalized meanwhile; proven',
  })
  expect(resumesAsked(world).toSorted()).toEqual(ids.toSorted())
  expect(resumesDone(world)).toEqual([])
  const rows = await recoveryCsv(result)
  expect(rows.get(ids[5] ?? '')).toMatchObject({ outcome: 'already fine', attempts: '0', resumed_at: '' })
  expect(rows.get(ids[5] ?? '')?.['message']).toContain('Only a subscription that needs attention')
})
