import { describe, expect, it } from 'vitest'
import { parseTimestamp } from '../../sandbox/data/times.ts'
import { type Row, start } from './client.ts'

const created = (rows: Row[]) => rows.map((row) => parseTimestamp(row.created) ?? Number.NaN)
const ascending = (values: number[]) =>
  values.every((value, place) => place === 0 || value >= (values[place - 1] ?? 0))

describe('a page of a list', () => {
  it('is the documented envelope with absolute addresses and sorted parameters', async () => {
    const { get, sandbox } = await start({ counts: { customers: 45 } })
    const first = await get('/customers/?page_size=20&ordering=created&name=')
    expect(first.json).toMatchObject({
      count: 45,
      next: `${sandbox.url}/customers/?name=&ordering=created&page=2&page_size=20`,
      previous: null,
    })
    const second = await get('/customers/?page_size=20&ordering=created&page=2')
    expect(second.json.previous).toBe(`${sandbox.url}/customers/?ordering=created&page_size=20`)
    const last = await get('/customers/?page=3')
    expect(last.json.next).toBeNull()
    expect(last.json.results).toHaveLength(5)
  })

  it('holds 20 records by default and never more than 100', async () => {
    const { rows } = await start({ counts: { customers: 250 } })
    expect(await rows('/customers/')).toHaveLength(20)
    for (const [size, length] of [
      ['7', 7],
      ['100', 100],
      ['500', 100],
      ['0', 20],
      ['x', 20],
    ] as const)
      expect(await rows(`/customers/?page_size=${size}`)).toHaveLength(length)
  })

  it('does not exist past the end, except page 1 of an empty list', async () => {
    const { get } = await start({ counts: { plans: 0, customers: 20 } })
    expect(await get('/plans/')).toMatchObject({ status: 200, json: { count: 0, next: null, results: [] } })
    for (const path of ['/plans/?page=2', '/customers/?page=2', '/customers/?page=0', '/customers/?page=x'])
      expect(await get(path)).toMatchObject({ status: 404, json: { detail: 'Invalid page.' } })
  })

  it('walked to the end holds every record once', async () => {
    const { walk, sandbox } = await start({ counts: { subscriptions: 205 }, tieOrder: 'stable' })
    const ids = await walk('/subscriptions/?ordering=created&page_size=50')
    expect(ids).toEqual(sandbox.control.ids({ resource: 'subscriptions' }))
    expect(new Set(ids).size).toBe(205)
  })
})

describe('ordering', () => {
  it('is honoured both ways by created, updated and id', async () => {
    const { rows } = await start({ counts: { customers: 100 } })
    for (const field of ['created', 'updated']) {
      const up = (await rows(`/customers/?ordering=${field}&page_size=100`)).map(
        (row) => parseTimestamp(row[field]) ?? 0,
      )
      expect(ascending(up)).toBe(true)
      const down = (await rows(`/customers/?ordering=-${field}&page_size=100`)).map(
        (row) => parseTimestamp(row[field]) ?? 0,
      )
      expect(down).toEqual(up.toReversed())
    }
    const ids = (await rows('/customers/?ordering=id&page_size=100')).map((row) => String(row.id))
    expect(ids).toEqual(ids.toSorted(new Intl.Collator('es').compare))
    expect(ids).not.toEqual(ids.toSorted())
  })

  it('is ignored in silence where a list does not honour it', async () => {
    const { rows } = await start({ lists: { customers: { orderings: ['created'], defaultOrdering: 'id' } } })
    const plain = await rows('/customers/')
    expect(await rows('/customers/?ordering=-created')).toEqual(plain)
    expect(await rows('/customers/?ordering=nonsense')).toEqual(plain)
    expect(ascending(created(await rows('/customers/?ordering=created')))).toBe(true)
  })

  it('follows a record whose updated moves, and leaves its created place alone', async () => {
    const { rows, sandbox } = await start({ counts: { customers: 30 } })
    const [first] = await rows('/customers/?ordering=created')
    sandbox.control.update({ resource: 'customers', id: first?.id, fields: { phone: 'new' } })
    expect((await rows('/customers/?ordering=-updated'))[0]).toMatchObject({ id: first?.id, phone: 'new' })
    expect((await rows('/customers/?ordering=created'))[0]?.id).toBe(first?.id)
  })
})

describe('records of equal created', () => {
  const group = async (tieOrder: 'shuffled' | 'stable') => {
    const { rows } = await start({
      counts: { customers: 60 },
      ties: { customers: { share: 0, groups: [30] } },
      tieOrder,
    })
    const read = async () => (await rows('/customers/?ordering=created&page_size=100')).map((row) => row.id)
    return { one: await read(), other: await read() }
  }

  it('change places between two requests', async () => {
    const { one, other } = await group('shuffled')
    expect(other).not.toEqual(one)
    expect(new Set(other)).toEqual(new Set(one))
    // Only the group's own places move: fifteen records lie before it and fifteen behind.
    expect(other.slice(0, 15)).toEqual(one.slice(0, 15))
    expect(other.slice(45)).toEqual(one.slice(45))
  })

  it('keep theirs where the order is stable', async () => {
    const { one, other } = await group('stable')
    expect(other).toEqual(one)
  })

  it('cross the border of a page, at its start and at its end', async () => {
    const { rows } = await start({
      counts: { customers: 60 },
      ties: { customers: { share: 0, groups: [30] } },
    })
    // The group lies at places 15 to 44, and the pages end at 20 and 40.
    for (const page of [1, 3]) {
      const seen = new Set<string>()
      for (let read = 0; read < 5; read++)
        for (const row of await rows(`/customers/?ordering=created&page_size=20&page=${page}`))
          seen.add(row.id)
      expect(seen.size).toBeGreaterThan(20)
    }
  })
})

describe('filters', () => {
  it('select what the records carry', async () => {
    const { rows, get } = await start({ counts: { subscriptions: 300, customers: 100, retentions: 600 } })
    const stuck = await rows('/subscriptions/?status=needs_attention&page_size=100')
    expect(stuck.length).toBeGreaterThan(10)
    expect(new Set(stuck.map((row) => row.status))).toEqual(new Set(['needs_attention']))
    const [one] = stuck
    for (const query of [
      `customer=${one?.customer}`,
      `lines=${one?.lines[0].id}`,
      `next_billing=${one?.next_billing}`,
    ]) {
      const found = await rows(`/subscriptions/?${query}&page_size=100`)
      expect(found.map((row) => row.id)).toContain(one?.id)
      expect(found.length).toBeLessThan(20)
    }
    const [sought] = await rows('/retentions/?page_size=1')
    const key = `supplier=${sought?.supplier}&document=${sought?.document}&number=${sought?.number}`
    expect((await rows(`/retentions/?${key}`)).map((row) => row.id)).toContain(sought?.id)
    expect((await get(`/retentions/?${key}&number=999999`)).json.count).toBe(0)
    expect((await get(`/retentions/?supplier=${sought?.supplier}&number=999999`)).json).toMatchObject({
      count: 0,
      results: [],
    })
  })

  it('compare created as instants, names by containment without case, links by id', async () => {
    const { rows, get } = await start({ counts: { customers: 100, subscriptions: 50 } })
    const all = await rows('/customers/?ordering=created&page_size=100')
    const from = all[40]?.created
    const later = await get(`/customers/?created__gte=${encodeURIComponent(from)}&page_size=100`)
    expect(later.json.count).toBe(created(all).filter((at) => at >= (parseTimestamp(from) ?? 0)).length)
    const utc = new Date((parseTimestamp(from) ?? 0) / 1000).toISOString()
    expect((await get(`/customers/?created__lte=${utc}&page_size=100`)).json.count).toBeLessThanOrEqual(41)
    for (const row of await rows('/customers/?name=FERRETER'))
      expect(row.name.toLowerCase()).toContain('ferreter')
    const [subscription] = await rows('/subscriptions/')
    expect((await rows(`/customers/?subscriptions=${subscription?.id}`))[0]?.id).toBe(subscription?.customer)
  })

  it('compare totals as decimals', async () => {
    const { sandbox, get } = await start()
    sandbox.control.insert({ resource: 'retentions', fields: { id: 90001, total: JSON.rawJSON('777.50') } })
    expect((await get('/retentions/?total=777.5')).json.results[0].id).toBe(90001)
    expect((await get('/retentions/?total=777.51')).json.count).toBe(0)
  })

  it('are refused by name where the value cannot be one, and ignored where the list has none such', async () => {
    const { get } = await start()
    expect(await get('/subscriptions/?status=odd')).toMatchObject({
      status: 400,
      json: { status: ['Select a valid choice. odd is not one of the available choices.'] },
    })
    expect((await get('/retentions/?document=x')).json).toEqual({ document: ['Enter a number.'] })
    expect((await get('/customers/?created__gte=x')).json).toEqual({
      created__gte: ['Enter a valid date/time.'],
    })
    expect((await get('/plans/?colour=red')).json.count).toBe(60)
  })

  it('see a record leave and enter as it changes', async () => {
    const { get, rows, sandbox } = await start({ counts: { plans: 20 } })
    const before = (await get('/plans/?status=archived')).json.count
    const [active] = await rows('/plans/?status=active')
    sandbox.control.update({ resource: 'plans', id: active?.id, fields: { status: 'archived' } })
    expect((await get('/plans/?status=archived')).json.count).toBe(before + 1)
    sandbox.control.delete({ resource: 'plans', id: active?.id })
    expect((await get('/plans/?status=archived')).json.count).toBe(before)
  })
})

describe('who may ask', () => {
  it('is settled before anything else', async () => {
    const { sandbox } = await start()
    const ask = async (headers: Record<string, string>) => {
      const response = await fetch(`${sandbox.url}/customers/`, { headers })
      return [response.status, await response.json()]
    }
    const authorization = `Token ${sandbox.token}`
    expect(await ask({})).toEqual([401, { detail: 'Authentication credentials were not provided.' }])
    expect(await ask({ authorization: 'Token other' })).toEqual([401, { detail: 'Invalid token.' }])
    expect((await ask({ authorization }))[0]).toBe(400)
    expect(await ask({ authorization, 'x-simple-workspace': 'acc_other' })).toEqual([
      403,
      { detail: 'You do not have permission to perform this action.' },
    ])
  })

  it('reaches test-mode data with the header, and live data where the header is ignored', async () => {
    const { request, sandbox } = await start({ counts: { customers: 30 }, testCounts: { customers: 3 } })
    const ask = () => request('GET', '/customers/', undefined, { 'x-service-test-mode': 'true' })
    expect((await ask()).json.count).toBe(3)
    expect((await ask()).json.results[0].test_mode).toBe(true)
    sandbox.control.adjust({ honoursTestMode: false })
    expect((await ask()).json.count).toBe(30)
    expect((await ask()).json.results[0].test_mode).toBe(false)
  })

  it('hears of unknown paths and methods', async () => {
    const { request, get } = await start()
    expect(await get('/invoices/')).toMatchObject({ status: 404, json: { detail: 'Not found.' } })
    expect(await request('DELETE', '/customers/')).toMatchObject({
      status: 405,
      json: { detail: 'Method "DELETE" not allowed.' },
    })
  })
})
