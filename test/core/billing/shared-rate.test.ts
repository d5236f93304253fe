import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Departure } from '../../../core/billing/rate-limit.ts'
import {
  type Grant,
  type PermitRequest,
  type Permits,
  SharedRate,
} from '../../../core/billing/shared-rate.ts'
import { failure, json, quickBilling, startTinyService } from './tiny-service.ts'

const none: Grant = { first: 0, waitsMs: [], retryMs: 20, heldByRun: false, workers: 1 }

/** Permits as a test gives them; what they are asked is kept. */
function permitsOf(grant: (ask: PermitRequest, asked: number) => Promise<Partial<Grant>> | Partial<Grant>) {
  const asks: PermitRequest[] = []
  const told: string[] = []
  const permits: Permits = {
    take: async (ask) => {
      asks.push(ask)
      return { ...none, ...(await grant(ask, asks.length)) }
    },
    pause: async (ms) => void told.push(`pause ${ms}`),
    slowDown: async (permit) => void told.push(`slow down ${permit}`),
  }
  return { permits, asks, told }
}

/** Without a rate, a permit is never void by its time. */
const gateOf = (permits: Permits, { concurrency = 8, requestsPerSecond = Infinity } = {}) =>
  new SharedRate({ permits, share: { requestsPerSecond }, concurrency })
const { signal } = new AbortController()
const read = { write: false, spacings: [] }
const write = { write: true, spacings: [] }

/** Whether a request may leave by now. */
async function mayLeave(departure: Departure | undefined, withinMs = 0): Promise<boolean> {
  const left = departure?.ready(signal).then(() => true)
  return await Promise.race([left ?? true, sleep(withinMs, false)])
}

test('a request whose permit was not used in time waits for another permit', async () => {
  const { permits, asks } = permitsOf((_, asked) => ({ first: asked, waitsMs: asked === 2 ? [] : [0] }))
  const { departure } = await gateOf(permits, { requestsPerSecond: 10 }).admit(read)
  expect(departure?.permit).toBe(1)
  // As a process that was frozen: a permit of 10 requests a second is void after 100 ms.
  await sleep(130)
  await departure?.ready(signal)
  expect(asks.length).toBeGreaterThanOrEqual(3)
  expect(departure?.permit).toBe(asks.length)
})

test('a request does not leave before its permit is due', async () => {
  const { permits } = permitsOf(() => ({ waitsMs: [300] }))
  const { departure } = await gateOf(permits).admit(read)
  const from = performance.now()
  expect(await mayLeave(departure)).toBe(false)
  await departure?.ready(signal)
  expect(performance.now() - from).toBeGreaterThan(250)
})

test('after a pause and after a 429 no permit is used that was given before, and all workers are told', async () => {
  for (const refuse of [
    (gate: SharedRate) => gate.pause(50),
    (gate: SharedRate) => gate.slowDown({ permit: 7 }),
  ]) {
    const { permits, told } = permitsOf((_, asked) => ({ first: asked, waitsMs: [20] }))
    const gate = gateOf(permits)
    const { departure } = await gate.admit(read)
    refuse(gate)
    await departure?.ready(signal)
    expect(departure?.permit).toBe(2)
    expect(told).toHaveLength(1)
  }
})

test('a worker has its share of the requests in flight, and at least one', async () => {
  const { permits } = permitsOf(({ wanted }) => ({
    waitsMs: Array.from({ length: wanted }, () => 0),
    workers: 3,
  }))
  const gate = gateOf(permits, { concurrency: 8 })
  const admitted: (() => void)[] = []
  for (let index = 0; index < 4; index += 1)
    void gate.admit(read).then(({ release }) => admitted.push(release))
  await sleep(60)
  expect(admitted).toHaveLength(2)
  admitted.shift()?.()
  await sleep(60)
  expect(admitted).toHaveLength(2)
})

test('writes are asked for before reads that wait longer, and reads only when no write waits for its time', async () => {
  const { permits, asks } = permitsOf((_, asked) => (asked < 3 ? {} : { waitsMs: [0] }))
  const gate = gateOf(permits)
  const order: string[] = []
  void gate.admit(read).then(() => order.push('read'))
  await gate.admit(write).then(() => order.push('write'))
  await sleep(60)
  expect(order).toEqual(['write', 'read'])
  expect(asks.slice(1).map(({ write: isWrite }) => isWrite)).toEqual([true, true, false])
})

test('while the store of the rate is away nothing is admitted, and what waits is admitted when it is back', async () => {
  const { permits } = permitsOf((_, asked) => {
    if (asked === 1) throw new Error('away')
    return { waitsMs: [0] }
  })
  const gate = gateOf(permits)
  const admission = gate.admit(read)
  expect(await Promise.race([admission.then(() => 'admitted'), sleep(100, 'waiting')])).toBe('waiting')
  await admission
})

test('a request that is aborted leaves the queue, and its permit goes to another one', async () => {
  let give: (grant: Partial<Grant>) => void = () => {}
  const { permits } = permitsOf(() => new Promise((resolve) => (give = resolve)))
  const gate = gateOf(permits)
  const stop = new AbortController()
  const aborted = gate.admit({ ...read, signal: stop.signal })
  const other = gate.admit(read)
  const why = new Error('stopped')
  stop.abort(why)
  await expect(aborted).rejects.toBe(why)
  give({ first: 5, waitsMs: [0] })
  expect((await other).departure?.permit).toBe(5)
})

test('a write whose claim took longer than its permit is valid leaves with another permit, claimed once', async () => {
  await using service = await startTinyService(json(201, { id: '1' }))
  const { permits, asks } = permitsOf((_, asked) => ({ first: asked, waitsMs: [0] }))
  const gate = gateOf(permits, { requestsPerSecond: 10 })
  let claims = 0
  const beforeSend = async () => {
    claims += 1
    await sleep(130)
  }
  await quickBilling({ baseUrl: service.baseUrl, gate }).createAddon({}, { beforeSend })
  expect(claims).toBe(1)
  expect(asks.length).toBeGreaterThanOrEqual(2)
  expect(service.seen).toHaveLength(1)
})

test('a claimed write that gets no permit within two seconds of its claim is not sent', async () => {
  await using service = await startTinyService(json(201, { id: '1' }))
  const { permits } = permitsOf(() => ({ waitsMs: [0] }))
  const gate = gateOf(permits)
  const beforeSend = () => gate.pause(60_000)
  const billing = quickBilling({ baseUrl: service.baseUrl, gate })
  expect(await failure(billing.createAddon({}, { beforeSend }))).toMatchObject({ name: 'SentTooLate' })
  expect(service.seen).toHaveLength(0)
})
