import { describe, expect, it } from 'vitest'
import { createTokenBucket, type Fault, retryAfter } from '../../sandbox/faults.ts'
import { retention, type Row, start } from './client.ts'

const CUSTOMERS = 'GET /customers/'
const POST = 'POST /retentions/'
const RESUME = 'POST /subscriptions/{id}/resume/'

const withFaults = (...faults: Fault[]) => start({ counts: { customers: 250 }, faults })

/** The status, or `lost` if no complete answer came. */
const outcome = (reply: Promise<{ status: number }>) => reply.then(({ status }) => status).catch(() => 'lost')

describe('when a fault strikes', () => {
  it('is counted among the requests it is meant for', async () => {
    const { get } = await withFaults({ kind: 'error', on: CUSTOMERS, requests: [2, 4] })
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
  it('comes before the effect, or after it', async () => {
    for (const kind of ['error', 'reset'] as const)
      for (const effect of ['none', 'done'] as const) {
        const { request, sandbox } = await withFaults({ kind, effect, on: POST })
        const before = sandbox.control.counters().records.live.retentions ?? 0
        expect(await outcome(request('POST', '/retentions/', retention(1)))).toBe(
          kind === 'error' ? 500 : 'lost',
        )
        const after = sandbox.control.counters().records.live.retentions ?? 0
        expect(after - before).toBe(effect === 'done' ? 1 : 0)
      }
  })

  it('may have its effect later, once', async () => {
    const { request, sandbox } = await withFaults({
      kind: 'lateEffect',
      seconds: 0.05,
      on: POST,
      requests: [1],
    })
    expect(await outcome(request('POST', '/retentions/', retention(1)))).toBe('lost')
    expect(sandbox.control.effects()).toEqual([])
    await expect.poll(() => sandbox.control.effects().length).toBe(1)
    expect(sandbox.control.effects()).toMatchObject([{ effect: 'create', by: 'late effect', request: 1 }])
    expect(sandbox.control.counters().waiting).toBe(0)
  })

  it('lets late effects land on demand', async () => {
    const { request, sandbox } = await withFaults({
      kind: 'lateEffect',
      seconds: 3600,
      on: POST,
      reply: 'error',
    })
    expect(await outcome(request('POST', '/retentions/', retention(1)))).toBe(500)
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

  it('is cut off, with the connection or with a length that fits', async () => {
    const { get } = await withFaults(
      { kind: 'cutBody', requests: [1] },
      { kind: 'cutBody', framing: 'whole', keep: 0.3, requests: [2] },
    )
    expect(await outcome(get('/customers/'))).toBe('lost')
    const cut = await get('/customers/')
    expect(cut.status).toBe(200)
    expect(cut.json).toBeUndefined()
    expect((await get('/customers/')).json.results).toHaveLength(20)
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
  it('is in another order, or unfiltered', async () => {
    const { rows, get } = await withFaults(
      { kind: 'ignoreOrdering', requests: [1] },
      { kind: 'ignoreFilters', filters: ['email'], requests: [3, 4] },
    )
    expect((await rows('/customers/?ordering=created'))[0]).not.toEqual(
      (await rows('/customers/?ordering=created'))[0],
    )
    expect((await get('/customers/?email=nobody@')).json.count).toBe(250)
    expect((await get('/customers/?email=nobody@&name=nobody')).json.count).toBe(0)
    expect((await get('/customers/?email=nobody@')).json.count).toBe(0)
  })

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

  it('hides records until their status is asked for', async () => {
    const { get } = await withFaults({ kind: 'hide', on: 'GET /plans/', statuses: ['archived'] })
    const [all, active, archived] = [
      await get('/plans/'),
      await get('/plans/?status=active'),
      await get('/plans/?status=archived'),
    ]
    expect(archived.json.count).toBeGreaterThan(0)
    expect(all.json.count).toBe(active.json.count)
    expect(all.json.count + archived.json.count).toBe(60)
  })

  it('has pages of another size', async () => {
    const { rows, get, sandbox } = await withFaults({ kind: 'pageSize', cap: 50 })
    expect(await rows('/customers/?page_size=100')).toHaveLength(50)
    expect(await rows('/customers/?page_size=30')).toHaveLength(30)
    expect((await get('/customers/?page_size=100&page=5')).status).toBe(200)
    sandbox.control.setFaults({ faults: [{ kind: 'pageSize', cap: 50, fixed: true }] })
    expect(await rows('/customers/?page_size=30')).toHaveLength(50)
  })

  it('holds a value of the wrong type', async () => {
    const { rows } = await withFaults({
      kind: 'wrongType',
      field: 'created',
      value: 12,
      records: 1,
      requests: [1],
    })
    const wrong = (await rows('/customers/?page_size=100')).filter((row: Row) => row.created === 12)
    expect(wrong).toHaveLength(1)
    expect((await rows('/customers/?page_size=100')).some((row: Row) => row.created === 12)).toBe(false)
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

describe('a resume', () => {
  const stuck = async (fault: Fault) => {
    const client = await start({ faults: [fault] })
    const [subscription] = await client.rows('/subscriptions/?status=needs_attention')
    const resume = () => client.request('POST', `/subscriptions/${subscription?.id}/resume/`, {})
    const now = () => client.sandbox.control.get({ resource: 'subscriptions', id: subscription?.id })
    return { subscription, resume, now, ...client }
  }

  it('falls back with the same reason or another', async () => {
    const { subscription, resume, sandbox } = await stuck({ kind: 'fallBack', on: RESUME })
    const { status, json } = await resume()
    expect(status).toBe(200)
    expect(json).toMatchObject({
      status: 'needs_attention',
      needs_attention_reason: subscription?.needs_attention_reason,
    })
    expect(json.needs_attention).not.toBe(subscription?.needs_attention)
    sandbox.control.setFaults({ faults: [{ kind: 'fallBack', reason: 'gateway_issue' }] })
    expect((await resume()).json.needs_attention_reason).toBe('gateway_issue')
    expect(sandbox.control.effects().map(({ effect }) => effect)).toEqual(['resume', 'resume'])
  })

  it('falls back some time after it seemed to have gone well', async () => {
    const { resume, now, sandbox } = await stuck({ kind: 'fallBack', afterSeconds: 3600 })
    expect((await resume()).json.status).toBe('active')
    sandbox.control.landLateEffects()
    expect(now()?.status).toBe('needs_attention')
  })

  it('is refused with words', async () => {
    const { resume, now } = await stuck({
      kind: 'refuse',
      on: RESUME,
      answer: { detail: 'La tarjeta venció.' },
    })
    expect(await resume()).toMatchObject({ status: 400, json: { detail: 'La tarjeta venció.' } })
    expect(now()?.status).toBe('needs_attention')
  })
})

describe('another client', () => {
  it('creates the same retention, or one of its own', async () => {
    const { request, get, sandbox } = await withFaults(
      { kind: 'otherClient', on: POST, requests: [1] },
      {
        kind: 'otherClient',
        on: POST,
        fields: { supplier: 'sup_other', number: 900 },
        when: 'after',
        requests: [1],
      },
    )
    const { json } = await request('POST', '/retentions/', retention(12))
    const found = (await get('/retentions/?supplier=sup_1&document=7&number=12')).json.results
    expect(found).toHaveLength(2)
    expect((await get('/retentions/?supplier=sup_other&document=7&number=900')).json.count).toBe(1)
    const effects = sandbox.control.effects()
    expect(effects.map(({ by }) => by)).toEqual(['other client', 'request', 'other client'])
    expect(effects[1]?.id).toBe(json.id)
  })

  it('or the service itself has other values stored than were sent', async () => {
    const { request } = await withFaults({
      kind: 'storeOtherwise',
      on: POST,
      fields: { total: 5, document: 8 },
    })
    expect((await request('POST', '/retentions/', retention(1))).json).toMatchObject({
      total: 5,
      document: 8,
      number: 1,
    })
  })
})
