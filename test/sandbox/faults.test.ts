import { describe, expect, it } from 'vitest'
import { createTokenBucket, type Fault, retryAfter } from '../../sandbox/faults.ts'
import { retention, start } from './client.ts'

const POST = 'POST /retentions/'
const RESUME = 'POST /subscriptions/{id}/resume/'

const withFaults = (...faults: Fault[]) => start({ counts: { customers: 250 }, faults })

describe('when a fault strikes', () => {
  it('is counted among the requests it is meant for', async () => {
    const { get } = await withFaults({ kind: 'error', on: 'GET /customers/', requests: [2, 4] })
    const seen: number[] = []
    for (let count = 0; count < 5; count++) {
      expect((await get('/plans/')).status).toBe(200)
      seen.push((await get('/customers/')).status)
    }
    expect(seen).toEqual([200, 500, 200, 500, 200])
  })

  it('can be a stretch of requests or of time', async () => {
    const { get, sandbox } = await withFaults({ kind: 'notFound', from: 2, to: 3 })
    const seen: number[] = []
    for (let count = 0; count < 4; count++) seen.push((await get('/plans/')).status)
    expect(seen).toEqual([200, 404, 404, 200])
    sandbox.control.setFaults({ faults: [{ kind: 'notFound', forSeconds: 2 }] })
    expect((await get('/plans/')).status).toBe(404)
    await expect.poll(async () => (await get('/plans/')).status, { timeout: 10_000 }).toBe(200)
  })

  it('can be a share, drawn alike for the same seed', async () => {
    const draw = async (seed: number) => {
      const { get } = await start({ seed, faults: [{ kind: 'error', rate: 0.3 }] })
      const seen: number[] = []
      for (let count = 0; count < 100; count++) seen.push((await get('/plans/?page_size=1')).status)
      return seen
    }
    const [one, same, other] = [await draw(3), await draw(3), await draw(4)]
    expect(same).toEqual(one)
    expect(other).not.toEqual(one)
    const struck = one.filter((status) => status === 500).length
    expect(struck).toBeGreaterThan(15)
    expect(struck).toBeLessThan(45)
  })

  it('can be told by the id in the path and by the body', async () => {
    const { request, sandbox } = await withFaults({ kind: 'error', on: POST, body: { number: 2 } })
    expect((await request('POST', '/retentions/', retention(1))).status).toBe(201)
    expect((await request('POST', '/retentions/', retention(2))).status).toBe(500)
    const [first, second] = sandbox.control.ids({ resource: 'orders' })
    sandbox.control.setFaults({ faults: [{ kind: 'error', ids: [String(second)] }] })
    expect((await request('DELETE', `/orders/${first}/`)).status).toBe(204)
    expect((await request('DELETE', `/orders/${second}/`)).status).toBe(500)
  })

  it('is refused where it is none', async () => {
    const { sandbox } = await start()
    const mistyped = { kind: 'latancy' } as unknown as Fault
    expect(() => sandbox.control.setFaults({ faults: [mistyped] })).toThrow(/^kind: the kinds are latency, /)
  })
})

describe('a lost or broken answer', () => {
  it('lets late effects land on demand', async () => {
    const { request, sandbox } = await withFaults({
      kind: 'lateEffect',
      seconds: 3600,
      on: POST,
      reply: 'error',
    })
    expect((await request('POST', '/retentions/', retention(1))).status).toBe(500)
    sandbox.control.landLateEffects()
    expect(sandbox.control.effects()).toHaveLength(1)
  })

  it('is a page of HTML from a gateway', async () => {
    const { get } = await withFaults(
      { kind: 'error', status: 502, html: true, requests: [1] },
      { kind: 'notFound', html: true, requests: [2] },
    )
    const bad = await get('/customers/')
    expect(bad.status).toBe(502)
    expect(bad.headers.get('content-type')).toBe('text/html')
    expect(bad.text).toContain('<h1>502 Bad Gateway</h1>')
    expect(await get('/customers/')).toMatchObject({ status: 404, json: undefined })
  })

  it('is slow by at least so much, and the effect comes even if nobody waits for it', async () => {
    const { get, sandbox } = await withFaults({ kind: 'latency', ms: 60, jitterMs: 20 })
    const from = performance.now()
    await get('/customers/')
    expect(performance.now() - from).toBeGreaterThan(58)
    const ended = new AbortController()
    const body = JSON.stringify(retention(1))
    const headers = {
      authorization: `Token ${sandbox.token}`,
      'x-simple-workspace': sandbox.workspace,
      'content-type': 'application/json',
    }
    const gone = fetch(`${sandbox.url}/retentions/`, { method: 'POST', body, headers, signal: ended.signal })
    await expect.poll(() => sandbox.control.counters().waiting).toBe(1)
    ended.abort()
    await expect(gone).rejects.toThrow(/abort/)
    await expect.poll(() => sandbox.control.effects().length).toBe(1)
  })
})

describe('a rate limit', () => {
  it('is a true token bucket', () => {
    let now = 0
    const take = createTokenBucket({ kind: 'throttle', perSecond: 2, burst: 3 }, () => now)
    expect([take(), take(), take()]).toEqual([0, 0, 0])
    expect(take()).toBeCloseTo(0.5)
    now = 499
    expect(take()).toBeGreaterThan(0)
    now = 500
    expect(take()).toBe(0)
    now = 100_000
    expect([take(), take(), take(), take() > 0]).toEqual([0, 0, 0, true])
  })

  it('says when to come back, in seconds or as a date', async () => {
    expect(retryAfter({ seconds: 1.2, form: 'seconds', nowMs: 0 })).toBe('2')
    expect(retryAfter({ seconds: 1.2, form: 'date', nowMs: 0 })).toBe('Thu, 01 Jan 1970 00:00:02 GMT')
    const { get, sandbox } = await withFaults({ kind: 'throttle', perSecond: 0.1, burst: 2 })
    expect([await get('/plans/'), await get('/plans/')].map(({ status }) => status)).toEqual([200, 200])
    const refused = await get('/plans/')
    expect(refused).toMatchObject({
      status: 429,
      json: { detail: expect.stringMatching(/^Request was throttled/) },
    })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(5)
    sandbox.control.setFaults({
      faults: [{ kind: 'throttle', perSecond: 0.1, burst: 0, retryAfter: 'date' }],
    })
    expect(Date.parse((await get('/plans/')).headers.get('retry-after') ?? '')).toBeGreaterThan(Date.now())
  })
})

describe('a list that is not what was asked for', () => {
  it('repeats a page, or comes short', async () => {
    const { rows } = await start({
      tieOrder: 'stable',
      faults: [
        { kind: 'repeatPage', requests: [2] },
        { kind: 'shortWindow', drop: 3, requests: [3] },
      ],
    })
    const first = await rows('/customers/?ordering=created')
    expect(await rows('/customers/?ordering=created&page=2')).toEqual(first)
    const short = await rows('/customers/?ordering=created')
    expect(short).toHaveLength(17)
    const ids = new Set(first.map((row) => row.id))
    expect(short.every((row) => ids.has(row.id))).toBe(true)
  })
})

describe('who is asking', () => {
  it('is no longer known when the token has expired', async () => {
    const { get, sandbox } = await withFaults({ kind: 'expireToken', next: 'second', requests: [3] })
    expect([(await get('/plans/')).status, (await get('/plans/')).status]).toEqual([200, 200])
    expect(await get('/plans/')).toMatchObject({ status: 401, json: { detail: 'Invalid token.' } })
    expect((await get('/plans/')).status).toBe(401)
    const headers = { authorization: 'Token second', 'x-simple-workspace': sandbox.workspace }
    expect((await fetch(`${sandbox.url}/plans/`, { headers })).status).toBe(200)
    sandbox.control.adjust({ tokens: [sandbox.token] })
    expect((await get('/plans/')).status).toBe(200)
  })
})

it('a resume can fall back some time after it seemed to have gone well', async () => {
  const { request, rows, sandbox } = await withFaults({ kind: 'fallBack', on: RESUME, afterSeconds: 3600 })
  const [subscription] = await rows('/subscriptions/?status=needs_attention')
  expect((await request('POST', `/subscriptions/${subscription?.id}/resume/`, {})).json.status).toBe('active')
  sandbox.control.landLateEffects()
  const { status } = sandbox.control.get({ resource: 'subscriptions', id: subscription?.id }) ?? {}
  expect(status).toBe('needs_attention')
})
