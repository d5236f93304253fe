import { describe, expect, it } from 'vitest'
import { parseTimestamp } from '../../sandbox/data/times.ts'
import { retention, start } from './client.ts'

describe('a retention that is created', () => {
  it('is a draft with an id, stored digit for digit, and the newest of its list', async () => {
    const { request, rows } = await start()
    const body = `{"supplier":"sup_9","document":7,"number":41,"date":"2026-03-01","total":1500.50,
      "lines":[{"name":"=1+1","amount":12345678901234567.89,"quantity":2},{"amount":"0.10"}]}`
    const { status, text, json } = await request('POST', '/retentions/', body)
    expect(status).toBe(201)
    expect(json).toMatchObject({
      status: 'draft',
      supplier: 'sup_9',
      number: 41,
      imported: false,
      test_mode: false,
    })
    expect(text).toContain('"total":1500.50')
    expect(text).toContain('"amount":12345678901234567.89')
    expect(text).toContain('"total":24691357802469135.78')
    expect(text).toContain('"amount":0.10')
    expect((await rows('/retentions/?ordering=-created'))[0]).toEqual(json)
  })

  it('is refused by field, and by place in its lines', async () => {
    const { request, sandbox } = await start()
    const before = sandbox.control.mark()
    expect(await request('POST', '/retentions/', {})).toMatchObject({
      status: 400,
      json: { supplier: ['This field is required.'], lines: ['This field is required.'] },
    })
    const lines = [{ amount: 1 }, { amount: 'a lot', discount_scheme: 'x' }]
    expect(
      (await request('POST', '/retentions/', retention(1, { lines, date: '2026-02-30', number: 1.5 }))).json,
    ).toEqual({
      number: ['A valid integer is required.'],
      date: ['Date has wrong format. Use one of these formats instead: YYYY-MM-DD.'],
      lines: [
        {},
        { amount: ['A valid number is required.'], discount_scheme: ['"x" is not a valid choice.'] },
      ],
    })
    expect((await request('POST', '/retentions/', '[1]')).json).toEqual({
      non_field_errors: ['Invalid data. Expected a dictionary, but got list.'],
    })
    expect((await request('POST', '/retentions/', '{"a":')).json.detail).toMatch(/^JSON parse error/)
    expect((await request('POST', '/retentions/', '{}', { 'content-type': 'text/plain' })).status).toBe(415)
    expect(sandbox.control.mark()).toBe(before)
  })
})

describe('products and addons', () => {
  it('are held to their lengths and choices', async () => {
    const { request } = await start()
    const product = { name: 'ñ'.repeat(81), unit_label: '', status: 'gone' }
    expect((await request('POST', '/products/', product)).json).toEqual({
      name: ['Ensure this field has no more than 80 characters.'],
      unit_label: ['This field may not be blank.'],
      status: ['"gone" is not a valid choice.'],
    })
    const addon = { name: null, description: 'x', currency: 'CLP', amount: 1, unit_label: 'metro' }
    expect((await request('POST', '/addons/', addon)).json).toEqual({
      name: ['This field may not be null.'],
      unit_label: ['Ensure this field has no more than 4 characters.'],
    })
  })
})

describe('a subscription', () => {
  it('changes only in what is sent, and its updated moves', async () => {
    const { request, rows } = await start()
    const [before] = await rows('/subscriptions/?status=active')
    const { status, json } = await request('PATCH', `/subscriptions/${before?.id}/`, {
      note: 'nota',
      status: 'paused',
    })
    expect(status).toBe(200)
    expect(json).toEqual({ ...before, note: 'nota', updated: json.updated })
    expect(parseTimestamp(json.updated)).toBeGreaterThan(parseTimestamp(before?.updated) ?? 0)
  })

  it('needs a default source under charge_payment, and a factor of at least 1', async () => {
    const { request, rows } = await start()
    const before = (await rows('/subscriptions/?page_size=100')).find((row) => row.default_source === null)
    const path = `/subscriptions/${before?.id}/`
    expect(await request('PATCH', path, { collection_scheme: 'charge_payment' })).toMatchObject({
      status: 400,
      json: { default_source: [expect.any(String)] },
    })
    expect((await request('PATCH', path, { custom_change: 0.99 })).json).toEqual({
      custom_change: ['Ensure this value is greater than or equal to 1.'],
    })
    const sent = { collection_scheme: 'charge_payment', default_source: 'src_1', custom_change: 1 }
    expect((await request('PATCH', path, sent)).json).toMatchObject(sent)
    expect((await request('PATCH', '/subscriptions/sub_none/', {})).status).toBe(404)
  })
})

describe('a resume', () => {
  it('leads from needs_attention to active and advances next_billing only where it is given', async () => {
    const { request, rows } = await start()
    const [one, other] = await rows('/subscriptions/?status=needs_attention')
    const resumed = await request('POST', `/subscriptions/${one?.id}/resume/`, {})
    expect(resumed).toMatchObject({
      status: 200,
      json: {
        status: 'active',
        needs_attention: null,
        needs_attention_reason: null,
        next_billing: one?.next_billing,
      },
    })
    expect(resumed.json.updated).not.toBe(one?.updated)
    const { json } = await request('POST', `/subscriptions/${other?.id}/resume/`, {
      next_billing: '2031-01-01',
    })
    expect(json.next_billing).toBe('2031-01-01')
  })
})

describe('contacts, orders and documents', () => {
  it('a contact changes inside its customer, whose updated stays', async () => {
    const { request, rows, sandbox } = await start()
    const before = (await rows('/customers/?page_size=100')).find((row) => row.contacts.length === 2)
    const [, contact] = before?.contacts ?? []
    const { status, json } = await request('PATCH', `/contacts/${contact.id}/`, {
      phone: null,
      name: 'Nueva',
    })
    expect(status).toBe(200)
    expect(json).toEqual({ ...contact, phone: null, name: 'Nueva', updated: json.updated })
    const after = sandbox.control.get({ resource: 'customers', id: before?.id })
    expect(after).toMatchObject({ contacts: [before?.contacts[0], json], updated: before?.updated })
    expect(
      (await request('PATCH', `/contacts/${contact.id}/`, { email: 'x', phone: '+56 9 1234 5678' })).json,
    ).toEqual({
      email: ['Enter a valid email address.'],
      phone: ['Ensure this field has no more than 12 characters.'],
    })
    expect((await request('PATCH', '/contacts/con_none_0/', {})).status).toBe(404)
    expect(sandbox.control.effects()).toMatchObject([
      { resource: 'contacts', id: contact.id, effect: 'update' },
    ])
  })
})
