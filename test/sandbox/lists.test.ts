import { describe, expect, it } from 'vitest'
import { start } from './client.ts'

describe('a page of a list', () => {
  it('does not exist past the end, except page 1 of an empty list', async () => {
    const { get } = await start({ counts: { plans: 0, customers: 20 } })
    expect(await get('/plans/')).toMatchObject({ status: 200, json: { count: 0, next: null, results: [] } })
    for (const path of ['/plans/?page=2', '/customers/?page=2', '/customers/?page=0', '/customers/?page=x'])
      expect(await get(path)).toMatchObject({ status: 404, json: { detail: 'Invalid page.' } })
  })
})

describe('records of equal created', () => {
  const ties = { counts: { customers: 60 }, ties: { customers: { share: 0, groups: [30] } } }

  it('change places between two requests', async () => {
    const { rows } = await start(ties)
    const read = async () => (await rows('/customers/?ordering=created&page_size=100')).map((row) => row.id)
    const [one, other] = [await read(), await read()]
    expect(other).not.toEqual(one)
    expect(new Set(other)).toEqual(new Set(one))
    // Only the group's own places move: fifteen records lie before it and fifteen behind.
    expect(other.slice(0, 15)).toEqual(one.slice(0, 15))
    expect(other.slice(45)).toEqual(one.slice(45))
  })

  it('cross the border of a page, at its start and at its end', async () => {
    const { rows } = await start(ties)
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
})
