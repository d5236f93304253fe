import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientRequest } from 'node:http'
import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { fullJitter, type Try, type WriteOptions } from '../../../core/billing/calls.ts'
import type { Billing } from '../../../core/billing/client.ts'
import { customers } from '../../../core/billing/resources/customers.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { plans } from '../../../core/billing/resources/catalog.ts'
import {
  cutOff,
  failure,
  html,
  json,
  page,
  quickBilling,
  reset,
  silent,
  startTinyService,
} from './tiny-service.ts'

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5))
}

const firstPage = { resource: customers, page: 1, pageSize: 100 }

describe('the operations', () => {
  const asked: [string, (billing: Billing) => Promise<unknown>, string, string, string][] = [
    ...Object.values(listResources).map((resource): (typeof asked)[number] => [
      `list ${resource.name}`,
      (b) => b.list({ resource, page: 2, pageSize: 97, ordering: '-created', filters: { status: 'a b' } }),
      'GET',
      `/${resource.name}/?status=a+b&page=2&page_size=97&ordering=-created`,
      '',
    ]),
    ['create retention', (b) => b.createRetention({ number: 1 }), 'POST', '/retentions/', '{"number":1}'],
    ['create product', (b) => b.createProduct({ name: 'ñ' }), 'POST', '/products/', '{"name":"ñ"}'],
    [
      'create addon',
      (b) => b.createAddon({ amount: JSON.rawJSON('1.50') }),
      'POST',
      '/addons/',
      '{"amount":1.50}',
    ],
    [
      'update subscription',
      (b) => b.updateSubscription('s1', { note: null }),
      'PATCH',
      '/subscriptions/s1/',
      '{"note":null}',
    ],
    ['update contact', (b) => b.updateContact('c/1', {}), 'PATCH', '/contacts/c%2F1/', '{}'],
    [
      'resume',
      (b) => b.resumeSubscription('s1', { next_billing: '2026-01-01' }),
      'POST',
      '/subscriptions/s1/resume/',
      '{"next_billing":"2026-01-01"}',
    ],
    ['delete order', (b) => b.deleteOrder('o1'), 'DELETE', '/orders/o1/', ''],
    ['get creditnotes', (b) => b.getDocument('creditnotes', '7'), 'GET', '/creditnotes/7/', ''],
    ['get cancellations', (b) => b.getDocument('cancellations', '8'), 'GET', '/cancellations/8/', ''],
  ]

  it.each(asked)('%s asks as the interface says', async (_name, call, method, url, body) => {
    const success =
      method === 'DELETE' ? json(204, '') : json(method === 'POST' ? 201 : 200, { id: 1, results: [] })
    await using service = await startTinyService(success)
    await call(quickBilling({ baseUrl: `${service.baseUrl}/api/` }))
    expect(service.seen).toHaveLength(1)
    expect(service.seen[0]).toMatchObject({ method, url: `/api${url}`, body })
    expect(service.seen[0]?.headers).toMatchObject({
      authorization: 'Token secret-token',
      'x-simple-workspace': 'acc_1',
    })
    expect(service.seen[0]?.headers['content-type']).toBe(body === '' ? undefined : 'application/json')
    expect(service.seen[0]?.headers).not.toHaveProperty('x-service-test-mode')
  })

  it('says in every request that it is test mode', async () => {
    await using service = await startTinyService(page())
    await quickBilling({ baseUrl: service.baseUrl, testMode: true }).list(firstPage)
    expect(service.seen[0]?.headers).toMatchObject({ 'x-service-test-mode': 'true' })
  })

  it.each(['', '.', '..'])('refuses the id "%s", which would address something else', async (id) => {
    await using service = await startTinyService(json(204, ''))
    const billing = quickBilling({ baseUrl: service.baseUrl })
    expect(String(await failure(billing.deleteOrder(id)))).toMatch(/can't be an id/)
    expect(service.seen).toHaveLength(0)
  })

  it('gives a page as it came, with every digit and the time it was served', async () => {
    const body =
      '{"count":3,"next":"http://elsewhere/?page=2","results":[{"id":"a","aggregations":{"sales":1500.50}},7]}'
    await using service = await startTinyService(json(200, body, { date: 'Wed, 21 Oct 2026 07:28:00 GMT' }))
    const listed = await quickBilling({ baseUrl: service.baseUrl }).list(firstPage)
    expect(JSON.stringify(listed.records)).toBe('[{"id":"a","aggregations":{"sales":1500.50}},7]')
    expect(listed).toMatchObject({
      count: 3,
      next: 'http://elsewhere/?page=2',
      servedAt: Date.UTC(2026, 9, 21, 7, 28),
    })
    expect(service.seen).toHaveLength(1)
  })

  it('says so where count and next are missing, and repairs nothing', async () => {
    await using service = await startTinyService(json(200, { results: [], count: '3' }))
    const listed = await quickBilling({ baseUrl: service.baseUrl }).list(firstPage)
    expect(listed).toMatchObject({ records: [], count: undefined, next: undefined })
  })
})

// What waits for seconds waits at once: each test has a service of its own.
describe.concurrent('reads', () => {
  it.each([
    ['429', json(429, { detail: 'slow down' })],
    ['500', json(500, {})],
    ['HTML with 502', html(502)],
    ['an empty 408', json(408, '')],
    ['HTML with 408, from a gateway that waited too long for a slow machine', html(408)],
    ['HTML with 404, a gateway’s', html(404)],
    ['JSON with 404, a gateway’s', json(404, { message: 'no Route matched' })],
    ['HTML with 400, a gateway’s', html(400)],
    ['HTML with 200', html(200)],
    ['an empty body', json(200, '')],
    ['a reset', reset],
    ['a body cut off by the connection', cutOff],
    ['a body cut off without a word', json(200, '{"count":1,"results":[{"id"')],
  ])('are tried again after %s', async (_name, fault) => {
    await using service = await startTinyService(fault, fault, page([{ id: 'a' }]))
    const { records } = await quickBilling({ baseUrl: service.baseUrl }).list(firstPage)
    expect(records).toEqual([{ id: 'a' }])
    expect(service.seen).toHaveLength(3)
  })

  it('are tried again after a timeout', async () => {
    await using service = await startTinyService(silent, page())
    await quickBilling({ baseUrl: service.baseUrl, timeoutSeconds: 2 }).list(firstPage)
    expect(service.seen).toHaveLength(2)
  })

  it('count as lost after 8 tries, with the last failure', async () => {
    await using service = await startTinyService(html(503))
    const waits: number[] = []
    const readWaitMs = (attempt: number) => waits.push(attempt) && 0
    const error = await failure(quickBilling({ baseUrl: service.baseUrl, readWaitMs }).list(firstPage))
    expect(error).toMatchObject({ name: 'ServiceFault', status: 503, messages: ['Bad Gateway nginx'] })
    expect(service.seen).toHaveLength(8)
    expect(waits).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it('count as lost after as many tries as they were given', async () => {
    await using service = await startTinyService(html(503))
    await failure(quickBilling({ baseUrl: service.baseUrl }).list({ ...firstPage, tries: 2 }))
    expect(service.seen).toHaveLength(2)
  })

  it.each([
    ['400', json(400, { page: ['bad'] }), { name: 'Refused', messages: ['page: bad'] }],
    ['403', json(403, { detail: 'no' }), { name: 'Forbidden', messages: ['no'] }],
    [
      'a JSON 404',
      json(404, { detail: 'Invalid page.' }),
      { name: 'NotFound', byService: true, messages: ['Invalid page.'] },
    ],
    ['what is not a list', json(200, [1]), { name: 'UnexpectedReply', problem: 'notTheShape' }],
    [
      'an envelope without results',
      json(200, { count: 1 }),
      { name: 'UnexpectedReply', problem: 'notTheShape' },
    ],
  ])('are not tried again after %s', async (_name, answer, expected) => {
    await using service = await startTinyService(answer)
    expect(await failure(quickBilling({ baseUrl: service.baseUrl }).list(firstPage))).toMatchObject(expected)
    expect(service.seen).toHaveLength(1)
  })

  it('say of a 404 that stays whether it was the service’s own', async () => {
    await using service = await startTinyService(html(404))
    const error = await failure(quickBilling({ baseUrl: service.baseUrl }).list(firstPage))
    expect(error).toMatchObject({ name: 'NotFound', byService: false })
    expect(service.seen).toHaveLength(8)
  })
})

describe.concurrent('writes', () => {
  const nameOf = {
    400: 'Refused',
    401: 'Unauthorized',
    403: 'Forbidden',
    404: 'NotFound',
    409: 'Refused',
    422: 'Refused',
    429: 'RateLimited',
  } as const
  const outcomes = [
    ['400', json(400, { lines: [{}, { amount: ['A valid number is required.'] }] }), 'Refused', 'refused'],
    ['409', json(409, { detail: 'It exists.' }), 'Refused', 'refused'],
    ['422', json(422, { number: ['Taken.'] }), 'Refused', 'refused'],
    ['429', json(429, { detail: 'Throttled.' }), 'RateLimited', 'none'],
    ['401', json(401, { detail: 'Invalid token.' }), 'Unauthorized', 'none'],
    ['403', json(403, { detail: 'No.' }), 'Forbidden', 'none'],
    // A create asks for no record, so that none was found says nothing of it.
    ['404', json(404, { detail: 'Not found.' }), 'NotFound', 'unknown'],
    ...([400, 401, 403, 404, 409, 422, 429] as const).flatMap((status) => [
      [`a gateway’s page of ${status}`, html(status), nameOf[status], 'unknown'] as const,
      [`a gateway’s JSON of ${status}`, json(status, { message: 'No' }), nameOf[status], 'unknown'] as const,
      [`a ${status} without a body`, json(status, ''), nameOf[status], 'unknown'] as const,
    ]),
    ['500', json(500, {}), 'ServiceFault', 'unknown'],
    ['502', html(502), 'ServiceFault', 'unknown'],
    ['408', html(408), 'ServiceFault', 'unknown'],
    ['HTML with 200', html(200), 'UnexpectedReply', 'unknown'],
    ['a redirect', json(302, '', { location: 'http://elsewhere/' }), 'UnexpectedReply', 'unknown'],
    ['a status nobody knows', json(418, {}), 'UnexpectedReply', 'unknown'],
    ['an empty 201', json(201, ''), 'UnexpectedReply', 'unknown'],
    ['a reset', reset, 'LostReply', 'unknown'],
    ['a cut-off body', cutOff, 'LostReply', 'unknown'],
    ['a timeout', silent, 'LostReply', 'unknown'],
  ] as const

  it.each(outcomes)(
    'are sent once, and say after %s what they can have done',
    async (_name, answer, name, effect) => {
      await using service = await startTinyService(answer)
      // Only the one that never answers waits so long.
      const billing = quickBilling({ baseUrl: service.baseUrl, timeoutSeconds: answer === silent ? 2 : 30 })
      expect(await failure(billing.createRetention({ number: 1 }))).toMatchObject({
        name,
        effect,
        method: 'POST',
        path: '/retentions/',
      })
      expect(service.seen).toHaveLength(1)
    },
  )

  it.each([
    ['the service’s own', json(404, { detail: 'Not found.' }), 'refused'],
    ['a gateway’s', json(404, { message: 'no Route matched with those values' }), 'unknown'],
  ])(
    'of one record are refused by a 404 only where it is the service’s: %s',
    async (_name, answer, effect) => {
      await using service = await startTinyService(answer)
      const billing = quickBilling({ baseUrl: service.baseUrl })
      expect(await failure(billing.deleteOrder('7'))).toMatchObject({ name: 'NotFound', effect })
      expect(await failure(billing.updateContact('7', {}))).toMatchObject({ name: 'NotFound', effect })
      expect(await failure(billing.resumeSubscription('7', {}))).toMatchObject({ name: 'NotFound', effect })
    },
  )

  it.each([
    ['a refused connection', 'http://127.0.0.1:1'],
    ['a name that does not resolve', 'http://nowhere.invalid'],
  ])('have surely not been sent after %s, and are not claimed', async (_name, baseUrl) => {
    let claims = 0
    const beforeSend = () => void (claims += 1)
    const failed = failure(quickBilling({ baseUrl }).createAddon({}, { beforeSend }))
    expect(await failed).toMatchObject({ name: 'Unreachable', effect: 'none' })
    expect(claims).toBe(0)
  })

  it('have surely not been sent when TLS fails', async () => {
    await using service = await startTinyService(page())
    const billing = quickBilling({ baseUrl: service.baseUrl.replace('http:', 'https:') })
    expect(await failure(billing.createAddon({}))).toMatchObject({ name: 'Unreachable', effect: 'none' })
  })

  it('name the place of each error as people count', async () => {
    const body = {
      lines: [{}, { amount: ['A valid number is required.'] }],
      non_field_errors: ['No.'],
      tags: { 0: ['Bad.'] },
    }
    await using service = await startTinyService(json(400, body))
    const error = await failure(quickBilling({ baseUrl: service.baseUrl }).createRetention({}))
    expect(error).toMatchObject({
      messages: ['lines.2.amount: A valid number is required.', 'No.', 'tags.1: Bad.'],
    })
    expect(String(error)).toContain(
      'POST /retentions/ (400: lines.2.amount: A valid number is required.; No.; tags.1: Bad.)',
    )
  })

  it('can leave on a connection that no request has used', async () => {
    await using service = await startTinyService(json(201, {}))
    const billing = quickBilling({ baseUrl: service.baseUrl })
    for (const options of [{}, {}, { freshConnection: true }, { freshConnection: true }, {}])
      await billing.createAddon({}, options)
    expect(service.seen.map(({ connection }) => connection)).toEqual([1, 1, 2, 3, 1])
  })

  it('claim once a connection stands, just before they leave, and never leave if the claim fails', async () => {
    await using service = await startTinyService(json(201, {}))
    const billing = quickBilling({ baseUrl: service.baseUrl })
    const seen: number[][] = []
    const options: WriteOptions = {
      beforeSend: async () => {
        await until(() => service.opened() > 0)
        seen.push([service.opened(), service.seen.length])
      },
    }
    await billing.createAddon({}, options)
    expect(seen).toEqual([[1, 0]])
    const broken = new Error('the ledger is full')
    const beforeSend = () => Promise.reject(broken)
    expect(await failure(billing.createAddon({}, { beforeSend }))).toBe(broken)
    expect(service.seen).toHaveLength(1)
  })

  it('never leave on a connection that the service closed while they were claimed', async () => {
    await using service = await startTinyService(json(201, {}))
    const billing = quickBilling({ baseUrl: service.baseUrl })
    const { promise: noticed, resolve: notice } = Promise.withResolvers<void>()
    const listen = (message: unknown) => {
      const { request } = message as { request: ClientRequest }
      if (service.baseUrl.includes(String(request.getHeader('host')))) notice()
    }
    subscribe('http.client.request.error', listen)
    const beforeSend = async () => {
      await until(() => service.opened() > 0)
      service.closeConnections()
      // A close that is still on its way is known to nobody: such a request counts as sent.
      await noticed
    }
    const error = await failure(billing.createAddon({}, { beforeSend }))
    unsubscribe('http.client.request.error', listen)
    expect(error).toMatchObject({ name: 'Unreachable', effect: 'none' })
    expect(service.seen).toHaveLength(0)
  })

  it('are not sent again by the client after a 401: with a new token they may be claimed again', async () => {
    await using service = await startTinyService(json(401, { detail: 'Invalid token.' }), json(201, {}))
    const tokens = ['old', 'new']
    const billing = quickBilling({ baseUrl: service.baseUrl, token: async () => tokens.shift() ?? 'new' })
    const error = await failure(billing.createAddon({}))
    expect(error).toMatchObject({ name: 'Unauthorized', effect: 'none', retryable: true })
    expect(service.seen).toHaveLength(1)
    await billing.createAddon({})
    expect(service.seen.map(({ headers }) => headers.authorization)).toEqual(['Token old', 'Token new'])
  })
})

describe('the token', () => {
  it('is asked for once more after a 401, and the request sent again if it has changed', async () => {
    await using service = await startTinyService(json(401, { detail: 'Invalid token.' }), page())
    const asks: unknown[] = []
    const token = async (ask?: { rejected: string }) => (asks.push(ask) === 1 ? 'old' : 'new')
    const billing = quickBilling({ baseUrl: service.baseUrl, token })
    await billing.list(firstPage)
    await billing.list(firstPage)
    expect(service.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Token old',
      'Token new',
      'Token new',
    ])
    expect(asks).toEqual([undefined, { rejected: 'old' }])
  })

  it('that a gateway does not accept is asked for once more, and the write not sent again', async () => {
    await using service = await startTinyService(html(401), json(201, { id: '1' }))
    const asks: unknown[] = []
    const token = async (ask?: { rejected: string }) => (asks.push(ask) === 1 ? 'old' : 'new')
    const billing = quickBilling({ baseUrl: service.baseUrl, token })
    expect(await failure(billing.createAddon({}))).toMatchObject({ name: 'Unauthorized', effect: 'unknown' })
    expect(service.seen).toHaveLength(1)
    await billing.createAddon({})
    expect(service.seen.map(({ headers }) => headers.authorization)).toEqual(['Token old', 'Token new'])
  })

  it('that has not changed, or is refused again, fails as Unauthorized', async () => {
    await using service = await startTinyService(json(401, {}))
    expect(await failure(quickBilling({ baseUrl: service.baseUrl }).list(firstPage))).toMatchObject({
      name: 'Unauthorized',
    })
    expect(service.seen).toHaveLength(1)
    let count = 0
    const changing = quickBilling({ baseUrl: service.baseUrl, token: async () => `token-${++count}` })
    expect(await failure(changing.list(firstPage))).toMatchObject({ name: 'Unauthorized' })
    expect(service.seen).toHaveLength(3)
  })

  it('is in no error, whatever the service and the network do', async () => {
    const echo = json(400, { detail: 'bad header: Token secret-token' })
    // Its end does not fit into what is kept of a sentence.
    const long = `${'x'.repeat(290)}secret-token`
    const escaped = '\\u0073ecret-token'
    for (const answer of [
      echo,
      json(400, { detail: long }),
      json(400, `{"detail": "${'x'.repeat(290)}${escaped}"}`),
      json(400, `{"${'x'.repeat(90)}${escaped}": ["unknown field"]}`),
      json(200, long),
      json(200, 'secret-token'),
      reset,
      html(500),
      json(302, '', { location: '/x' }),
    ]) {
      await using service = await startTinyService(answer)
      const error = await failure(quickBilling({ baseUrl: service.baseUrl }).createAddon({}))
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain('secret')
    }
  })

  it('with characters that no header may carry is refused without being shown', async () => {
    const error = await failure(
      quickBilling({ baseUrl: 'http://127.0.0.1:1', token: async () => 'se\ncret' }).list(firstPage),
    )
    expect(error).toBeInstanceOf(TypeError)
    expect(inspect(error)).not.toContain('cret')
  })
})

describe('the bounds', () => {
  it('a redirect is not followed, and says where it pointed', async () => {
    await using elsewhere = await startTinyService(page())
    const location = `${elsewhere.baseUrl.replace('//', '//user:pass@')}/login/?next=secret`
    await using service = await startTinyService(json(301, '', { location }))
    const error = await failure(quickBilling({ baseUrl: service.baseUrl }).list(firstPage))
    expect(error).toMatchObject({ name: 'UnexpectedReply', problem: 'redirect', retryable: false })
    expect(String(error)).toContain(`it points to ${elsewhere.baseUrl} and`)
    expect(elsewhere.seen).toHaveLength(0)
  })

  it.each([
    ['plain', json(200, JSON.stringify({ results: ['x'.repeat(300_000)] }))],
    ['compressed', json(200, '')],
  ])('a %s body over the limit is given up, and not asked for again', async (name) => {
    const body = Buffer.from(JSON.stringify({ results: ['x'.repeat(3_000_000)] }))
    const compressed = name === 'compressed'
    await using service = await startTinyService((response) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        ...(compressed && { 'content-encoding': 'gzip' }),
      })
      response.end(compressed ? gzipSync(body) : body)
    })
    const error = await failure(
      quickBilling({ baseUrl: service.baseUrl, maxResponseBytes: 100_000 }).list(firstPage),
    )
    expect(error).toMatchObject({ name: 'UnexpectedReply', problem: 'tooLarge', retryable: false })
    expect(service.seen).toHaveLength(1)
  })

  it.concurrent('a body that trickles is given up at the deadline of the whole request', async () => {
    await using service = await startTinyService((response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      const trickle = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(trickle))
    })
    const started = performance.now()
    const error = await failure(quickBilling({ baseUrl: service.baseUrl, timeoutSeconds: 2 }).createAddon({}))
    expect(error).toMatchObject({ name: 'LostReply' })
    expect(performance.now() - started).toBeLessThan(20_000)
  })

  it('connections are never more than the concurrency, and are used again', async () => {
    let open = 0
    let most = 0
    await using service = await startTinyService((response, seen, request) => {
      most = Math.max(most, ++open)
      setTimeout(() => {
        open -= 1
        page()(response, seen, request)
      }, 20)
    })
    const billing = quickBilling({ baseUrl: service.baseUrl, concurrency: 3 })
    await Promise.all(Array.from({ length: 12 }, () => billing.list(firstPage)))
    expect(most).toBe(3)
    expect(service.connections.size).toBe(3)
  })

  it.concurrent.each([
    ['in seconds', () => '1'],
    ['as a date on the service’s own clock', () => new Date(Date.UTC(2020, 0, 1, 0, 0, 1)).toUTCString()],
  ])('Retry-After %s pauses everything, writes too', async (_name, retryAfter) => {
    const date = new Date(Date.UTC(2020, 0, 1)).toUTCString()
    await using service = await startTinyService(
      json(429, {}, { 'retry-after': retryAfter(), date }),
      json(201, {}),
    )
    const billing = quickBilling({ baseUrl: service.baseUrl })
    expect(await failure(billing.createAddon({}))).toMatchObject({ name: 'RateLimited' })
    const started = performance.now()
    await billing.limited({ requestsPerSecond: 1000 }).createAddon({})
    expect(performance.now() - started).toBeGreaterThan(900)
  })

  it('an abort ends a request on its way with the signal’s own reason, and is not tried again', async () => {
    const stop = new AbortController()
    const reason = new Error('the run is cancelled')
    await using service = await startTinyService(() => stop.abort(reason))
    expect(
      await failure(quickBilling({ baseUrl: service.baseUrl }).list({ ...firstPage, signal: stop.signal })),
    ).toBe(reason)
    expect(service.seen).toHaveLength(1)
  })

  it('a 429 halves the rate of what comes after it', async () => {
    await using service = await startTinyService(json(429, {}), json(201, {}))
    const billing = quickBilling({ baseUrl: service.baseUrl, rate: { requestsPerSecond: 20 } })
    expect(await failure(billing.createAddon({}))).toMatchObject({ name: 'RateLimited' })
    const started = performance.now()
    for (let index = 0; index < 4; index++) await billing.createAddon({})
    // Four intervals of 101 ms instead of 51, a little less as the rate grows back.
    expect(performance.now() - started).toBeGreaterThan(350)
  })

  it('an abort ends a write on its way with the signal’s own reason', async () => {
    const stop = new AbortController()
    const reason = new Error('the run is cancelled')
    await using service = await startTinyService(() => stop.abort(reason))
    expect(
      await failure(quickBilling({ baseUrl: service.baseUrl }).createAddon({}, { signal: stop.signal })),
    ).toBe(reason)
  })

  it('an abort ends the wait between two tries with the signal’s own reason', async () => {
    const stop = new AbortController()
    const reason = new Error('the run is cancelled')
    await using service = await startTinyService(html(502))
    const readWaitMs = () => {
      setImmediate(() => stop.abort(reason))
      return 60_000
    }
    const billing = quickBilling({ baseUrl: service.baseUrl, readWaitMs })
    expect(await failure(billing.list({ ...firstPage, signal: stop.signal }))).toBe(reason)
  })

  it('a share slows its own client and no other', async () => {
    await using service = await startTinyService(page())
    const billing = quickBilling({ baseUrl: service.baseUrl })
    const share = billing.limited({ requestsPerSecond: 4 })
    const timed = async (client: Billing) => {
      const started = performance.now()
      for (let index = 0; index < 4; index++) await client.list({ resource: plans, page: 1, pageSize: 1 })
      return performance.now() - started
    }
    const [slow, free] = await Promise.all([timed(share), timed(billing)])
    expect(slow).toBeGreaterThan(730)
    // Compared with each other: a busy machine slows both.
    expect(free).toBeLessThan(slow)
  })
})

it('the observer is called for every try', async () => {
  await using service = await startTinyService(html(502), page())
  const tries: Try[] = []
  await quickBilling({ baseUrl: service.baseUrl, onRequest: (tried) => tries.push(tried) }).list(firstPage)
  expect(tries).toMatchObject([
    { operation: 'list customers', status: 502, attempt: 1 },
    { operation: 'list customers', status: 200, attempt: 2 },
  ])
  for (const { ms, waitedMs } of tries) expect([ms > 0, waitedMs >= 0]).toEqual([true, true])
})

it('a read waits up to 1, 2, 4, 8, 16 and then 30 seconds, anywhere from nothing on', () => {
  const waits = (random: number) => [1, 2, 3, 4, 5, 6, 7].map((attempt) => fullJitter(attempt, () => random))
  expect(waits(1)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  expect(waits(0)).toEqual([0, 0, 0, 0, 0, 0, 0])
})
