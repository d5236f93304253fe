import { describe, expect, it } from 'vitest'
import { type Loose, retention, start } from './client.ts'

describe('the control', () => {
  it('inserts, changes, deletes and restores records as another client would', async () => {
    const { sandbox, rows } = await start({ counts: { customers: 10 }, tieOrder: 'stable' })
    const { control } = sandbox
    const id = control.insert({
      resource: 'customers',
      fields: { id: 'cus_mine', name: 'Mía', sales: JSON.rawJSON('0.10') },
    })
    expect(id).toBe('cus_mine')
    expect((await rows('/customers/'))[0]).toMatchObject({ id, name: 'Mía', sales: 0.1 })
    expect([...control.records({ resource: 'customers' })].at(-1)).toContain('"sales":0.10')
    expect(control.update({ resource: 'customers', id, fields: { name: null } })).toBe(true)
    expect(control.get({ resource: 'customers', id })?.name).toBeNull()
    const [first = ''] = control.ids({ resource: 'customers' })
    expect(control.delete({ resource: 'customers', id: first })).toBe(true)
    expect(control.delete({ resource: 'customers', id: first })).toBe(false)
    expect(control.restore({ resource: 'customers', id: first })).toBe(true)
    expect(control.ids({ resource: 'customers' })[0]).toBe(first)
    expect(control.effects().map(({ effect, by }) => `${effect} ${by}`)).toEqual([
      'create control',
      'update control',
      'delete control',
      'restore control',
    ])
  })

  it('places an inserted record by the created it is given, whatever the record says of itself', async () => {
    const { sandbox, rows } = await start({ counts: { customers: 10 } })
    sandbox.control.insert({ resource: 'customers', created: 1, fields: { id: 'old', created: 'gestern' } })
    expect((await rows('/customers/?ordering=created'))[0]).toMatchObject({ id: 'old', created: 'gestern' })
  })

  it('knows which records were there throughout', async () => {
    const { sandbox } = await start({ counts: { customers: 5 } })
    const { control } = sandbox
    const [a = '', b = '', c = '', d = '', e = ''] = control.ids({ resource: 'customers' })
    control.delete({ resource: 'customers', id: a })
    const since = control.mark()
    control.delete({ resource: 'customers', id: b })
    control.delete({ resource: 'customers', id: c })
    control.restore({ resource: 'customers', id: c })
    control.restore({ resource: 'customers', id: a })
    control.insert({ resource: 'customers' })
    control.update({ resource: 'customers', id: d, fields: { name: 'x' } })
    const until = control.mark()
    control.delete({ resource: 'customers', id: e })
    expect(control.ids({ resource: 'customers', since })).toEqual([d])
    expect(control.ids({ resource: 'customers', since, until })).toEqual([d, e])
    expect(control.ids({ resource: 'customers' })).toHaveLength(4)
  })
})

describe('the audit', () => {
  it('shows each request with its answer and each effect with its request', async () => {
    const { request, sandbox } = await start()
    const from = Date.now()
    const body = JSON.stringify(retention(3))
    const { json } = await request('POST', '/retentions/', body)
    await request('GET', '/retentions/?page_size=1')
    const [post, get] = sandbox.control.requests()
    expect(post).toMatchObject({ request: 1, method: 'POST', url: '/retentions/', body, status: 201 })
    expect(get).toMatchObject({ request: 2, method: 'GET', url: '/retentions/?page_size=1', status: 200 })
    expect(post?.receivedAt).toBeGreaterThan(from - 5)
    expect(post?.answeredAt).toBeGreaterThan(post?.receivedAt ?? 0)
    expect(sandbox.control.effects()).toEqual([
      {
        sequence: 1,
        at: expect.any(Number),
        effect: 'create',
        resource: 'retentions',
        mode: 'live',
        id: json.id,
        by: 'request',
        request: 1,
      },
    ])
    expect(sandbox.control.requests({ after: 1 })).toHaveLength(1)
  })

  it('tells a request that was never answered, and what struck it', async () => {
    const { request, sandbox } = await start({ faults: [{ kind: 'reset', effect: 'done' }] })
    await expect(request('POST', '/retentions/', retention(1))).rejects.toThrow('fetch failed')
    const [lost] = sandbox.control.requests()
    expect(lost).toMatchObject({ faults: ['reset'], request: 1 })
    expect(lost?.status).toBeUndefined()
    expect(sandbox.control.effects()).toMatchObject([{ request: 1 }])
  })

  it('counts the busiest second', async () => {
    const { get, sandbox } = await start()
    for (let count = 0; count < 10; count++) await get('/plans/?page_size=1')
    expect(sandbox.control.counters()).toMatchObject({ requests: 10, busiestSecond: 10, effects: 0 })
  })

  it('keeps only writes, or no requests, where the setting says so, and always the effects', async () => {
    for (const [audit, kept] of [
      ['writes', 1],
      ['none', 0],
    ] as const) {
      const { request, get, sandbox } = await start({ audit })
      await get('/plans/')
      await request('POST', '/retentions/', retention(1))
      expect(sandbox.control.requests()).toHaveLength(kept)
      expect(sandbox.control.effects()).toHaveLength(1)
      expect(sandbox.control.counters().requests).toBe(2)
    }
  })
})

describe('the control over HTTP', () => {
  it('does what it does in the process, and needs no token', async () => {
    const { sandbox, get } = await start({ counts: { plans: 7 } })
    const call = async (name: string, argument?: unknown): Promise<Loose> => {
      const body = argument === undefined ? '' : JSON.stringify(argument)
      const response = await fetch(`${sandbox.url}/_sandbox/${name}`, { method: 'POST', body })
      const text = await response.text()
      if (response.headers.get('content-type') !== 'application/x-ndjson') return JSON.parse(text)
      return text
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
    }
    const mark = await call('mark')
    expect(await call('drift', { resource: 'plans', deletes: 2 })).toMatchObject({
      deletes: [expect.any(String), expect.any(String)],
    })
    expect(await call('ids', { resource: 'plans', since: mark })).toHaveLength(5)
    expect((await call('records', { resource: 'plans' })).map((row: Loose) => row.id)).toEqual(
      sandbox.control.ids({ resource: 'plans' }),
    )
    expect(await call('effects', { after: mark })).toHaveLength(2)
    await call('setFaults', { faults: [{ kind: 'error', status: 503 }] })
    expect((await get('/plans/')).status).toBe(503)
    expect(await call('requests', {})).toMatchObject([{ status: 503, faults: ['error'] }])
    await call('setFaults', { faults: [] })
    await call('setDrift', { drift: { plans: { perRequest: { deletes: 1 } } } })
    await get('/plans/')
    await call('setDrift', { drift: {} })
    await get('/plans/')
    expect(await call('counters')).toMatchObject({ requests: 3, records: { live: { plans: 4 } } })
    expect(await call('insert', { resource: 'plans', fields: { id: 'p', amount: 1 } })).toBe('p')
    expect(await call('get', { resource: 'plans', id: 'p' })).toMatchObject({ amount: 1 })
    await call('adjust', { lists: { plans: { defaultOrdering: 'created' } } })
    expect((await get('/plans/?page_size=100')).json.results.at(-1).id).toBe('p')
  })

  it('says what is wrong with a call', async () => {
    const { sandbox } = await start()
    const call = async (name: string, body: string) => {
      const response = await fetch(`${sandbox.url}/_sandbox/${name}`, { method: 'POST', body })
      return [response.status, await response.json()]
    }
    expect(await call('explode', '{}')).toEqual([404, { error: 'no such call: explode' }])
    expect((await call('setFaults', '{"faults":[{"kind":"typo"}]}'))[0]).toBe(400)
    expect(await call('delete', '{"resource":"unicorns","id":1}')).toEqual([
      400,
      { error: 'no such resource: unicorns' },
    ])
  })
})

describe('a sandbox', () => {
  it('ends with its connections, timers and late effects', async () => {
    const { sandbox, request } = await start({
      drift: { plans: { perSecond: { inserts: 1000 } } },
      faults: [
        { kind: 'latency', ms: 3_600_000, on: 'GET /plans/' },
        { kind: 'lateEffect', seconds: 0.03, on: 'POST /retentions/', reply: 'error' },
      ],
    })
    const lost = request('GET', '/plans/').then(
      () => 'answered',
      () => 'lost',
    )
    await expect.poll(() => sandbox.control.counters().waiting).toBe(1)
    await request('POST', '/retentions/', retention(1))
    await sandbox.close()
    expect(await lost).toBe('lost')
    const mark = sandbox.control.mark()
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(sandbox.control.mark()).toBe(mark)
  })
})
