import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Departure, Spacing } from '../../../core/billing/rate-limit.ts'
import { type Grant, type PermitRequest, type Permits, toleranceMs } from '../../../core/billing/permits.ts'
import { SharedRate } from '../../../core/billing/shared-rate.ts'
import { failure, json, quickBilling, startTinyService } from './tiny-service.ts'

const none = { first: 0, waitsMs: [], retryMs: 20, heldByRun: false, workers: 1 }

/** Permits as a test gives them; what they are asked is kept. */
function permitsOf(grant: (ask: PermitRequest, asked: number) => Promise<Partial<Grant>> | Partial<Grant>) {
  const asks: PermitRequest[] = []
  const told: string[] = []
  const permits: Permits = {
    take: async (ask) => {
      asks.push(ask)
      const at = performance.now()
      return { ...none, at, ...(await grant(ask, asks.length)) }
    },
    isAway: (error) => error instanceof Error && error.message === 'away',
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

test('a worker that is alone uses a permit sooner than one of several, since it gets more of the rate', () => {
  for (const requestsPerSecond of [1, 10, 50, 100, 1_000]) {
    const [alone, several] = [1, 2].map((workers) => toleranceMs({ requestsPerSecond, workers }))
    expect(alone).toBeGreaterThan(29)
    expect(several).toBeGreaterThan(59)
    expect(several).toBeLessThanOrEqual(100)
  }
  expect(toleranceMs({ requestsPerSecond: 100, workers: 1 })).toBeCloseTo(30)
  expect(toleranceMs({ requestsPerSecond: 100, workers: 4 })).toBeCloseTo(60)
})

test.for([
  { workers: 1, isVoid: true },
  { workers: 2, isVoid: false },
])(
  'of $workers workers at 100 a second, a permit that is 45 ms late is void: $isVoid',
  async ({ workers, isVoid }) => {
    let now = 1_000
    vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => void vi.restoreAllMocks())
    const { permits } = permitsOf((_, asked) => ({ first: asked, waitsMs: [0], workers }))
    const { departure } = await gateOf(permits, { requestsPerSecond: 100 }).admit(read)
    now += 45
    await departure?.ready(signal)
    expect(departure?.permit).toBe(isVoid ? 2 : 1)
  },
)

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

test('after a pause and after a 429 no permit is used that was asked for before', async () => {
  for (const refuse of [
    (gate: SharedRate) => gate.pause(50),
    (gate: SharedRate) => gate.slowDown({ permit: 7 }),
  ]) {
    let give: (grant: Partial<Grant>) => void = () => {}
    const { permits, asks } = permitsOf((_, asked) =>
      asked === 1 ? new Promise((resolve) => (give = resolve)) : { first: asked, waitsMs: [0] },
    )
    const gate = gateOf(permits)
    const admission = gate.admit(read)
    refuse(gate)
    give({ first: 1, waitsMs: [0] })
    expect((await admission).departure?.permit).toBe(2)
    expect(asks).toHaveLength(2)
  }
})

test('permits beyond those that were asked for are used by the next requests, each once and while it is valid', async () => {
  let now = 1_000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => void vi.restoreAllMocks())
  const waitsMs = [0, 10, 20, 30, 40]
  const { permits, asks } = permitsOf((_, asked) => ({ first: 100 * asked, waitsMs }))
  const gate = gateOf(permits, { requestsPerSecond: 100 })
  const next = async (request = read) => {
    const { departure, release } = await gate.admit(request)
    release()
    return departure?.permit
  }
  expect([await next(), await next(write)]).toEqual([100, 101])
  // At this rate a permit of a worker that is alone is valid for 30 ms, and the next one is for 14 more.
  now += 36
  expect(asks).toHaveLength(1)
  expect([await next(), await next()]).toEqual([103, 104])
  expect(await next()).toBe(200)
  now += 60_000
  expect(await next()).toBe(300)
})

test('a worker that uses permits beyond those it asked for asks for more before they are used up, and stops when nobody needs them', async () => {
  let now = 1_000
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  onTestFinished(() => void vi.restoreAllMocks())
  let give: (grant: Partial<Grant>) => void = () => {}
  const waitsMs = [0, 10, 20, 30]
  const { permits, asks } = permitsOf((_, asked) =>
    asked === 2 ? new Promise((resolve) => (give = resolve)) : { first: 100 * asked, waitsMs },
  )
  const gate = gateOf(permits, { requestsPerSecond: 100 })
  const next = async () => {
    const { departure, release } = await gate.admit(read)
    release()
    return departure?.permit
  }
  expect([await next(), await next()]).toEqual([100, 101])
  expect(asks).toHaveLength(1)
  now += 15
  expect(await next()).toBe(102)
  expect(asks).toHaveLength(2)
  expect(asks[1]).toMatchObject({ wanted: 0, write: false, leftWaiting: false, waitedMs: 0 })
  // No request waits for the answer.
  expect(await next()).toBe(103)
  give({ first: 200, waitsMs })
  expect(await next()).toBe(200)
  // Its permits were asked for without a request, and one was used.
  now += 60_000
  await sleep(30)
  expect(asks).toHaveLength(2)
})

test('permits are not asked for ahead where the last answer had none to spare', async () => {
  const { permits, asks } = permitsOf((_, asked) => ({ first: asked, waitsMs: [0] }))
  const gate = gateOf(permits)
  for (let index = 0; index < 3; index += 1) await gate.admit(read)
  await sleep(30)
  expect(asks.map(({ wanted }) => wanted)).toEqual([1, 1, 1])
})

test('a request of a run with its own rate uses no permit that another one did not want', async () => {
  const { permits, asks } = permitsOf((_, asked) => ({ first: 100 * asked, waitsMs: [0, 0] }))
  const gate = gateOf(permits)
  await gate.admit(read)
  const ofRun = { write: true, spacings: [new Spacing({ requestsPerSecond: 5, run: 'import-1' })] }
  expect((await gate.admit(ofRun)).departure?.permit).toBe(200)
  expect(asks[1]?.run).toMatchObject({ name: 'import-1' })
  expect((await gate.admit(read)).departure?.permit).toBe(101)
})

test('after a pause and after a 429 no permit is used that nobody had wanted before', async () => {
  for (const refuse of [
    (gate: SharedRate) => gate.pause(50),
    (gate: SharedRate) => gate.slowDown({ permit: 7 }),
  ]) {
    const { permits } = permitsOf((_, asked) => ({ first: 100 * asked, waitsMs: [0, 0] }))
    const gate = gateOf(permits)
    await gate.admit(read)
    refuse(gate)
    expect((await gate.admit(read)).departure?.permit).toBe(200)
  }
})

test('during a pause no permits are asked for ahead: the store may not know of it yet, and would grant them', async () => {
  const { permits, asks } = permitsOf((_, asked) => ({ first: 100 * asked, waitsMs: [0, 0, 1_000] }))
  const gate = gateOf(permits)
  await gate.admit(read)
  const { release } = await gate.admit(read)
  gate.pause(60)
  const from = performance.now()
  release()
  expect((await gate.admit(read)).departure?.permit).toBe(200)
  expect(asks).toHaveLength(2)
  expect(performance.now() - from).toBeGreaterThan(50)
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

test('an error that is no outage of the store fails the requests that wait, and the next one asks again', async () => {
  const wrong = new Error('permission denied for function take_permits')
  const { permits } = permitsOf((_, asked) => {
    if (asked === 1) throw wrong
    return { first: asked, waitsMs: [0] }
  })
  const gate = gateOf(permits)
  await expect(gate.admit({ ...read, signal })).rejects.toBe(wrong)
  expect((await gate.admit(read)).departure?.permit).toBe(2)
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

test('a worker knows of the pause that another one was asked for, and of none where it only waits its turn', async () => {
  const stop = new AbortController()
  const waiting = async (grant: Partial<Grant>) => {
    const { permits, asks } = permitsOf(() => grant)
    const gate = gateOf(permits, { requestsPerSecond: 1 })
    void gate.admit({ ...read, signal: stop.signal }).catch(() => undefined)
    await expect.poll(() => asks.length).toBeGreaterThan(0)
    const { paused } = gate
    return paused && Math.round((paused.until - Date.now()) / 1000)
  }
  expect(await waiting({ retryMs: 1_800_000 })).toBe(1_800)
  expect(await waiting({ retryMs: 1_000 })).toBeUndefined()
  expect(await waiting({ retryMs: 60_000, heldByRun: true })).toBeUndefined()
  stop.abort()
})
