import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { checkPrivacy, toFields, type Privacy } from '../../../core/tables/privacy.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { toTables } from '../../../core/tables/privacy.ts'
import { readTable } from './csv.ts'

const { customers } = listResources
const resources = Object.values(listResources)

function encode(privacy: Privacy, json: string) {
  const encoder = createRowEncoder({ resource: customers, privacy })
  const encoded = encoder.encode([parseLossless(json)])
  const text = [...encoded.tables, encoded.rejected].map((rows) => rows.text).join('')
  return { encoder, encoded, text, row: readTable(encoder, encoded, 'customers')[0] }
}

const hmac = (text: string) => createHmac('sha256', 'k').update(text).digest('hex')

describe('an excluded field', () => {
  test.each([
    ['customers.email', '"email":"SECRET"'],
    ['customers.country.name', '"country":{"name":"SECRET","id":"CL"}'],
    ['customers.country_name', '"country":{"name":"SECRET"}'],
    ['customers.country', '"country":{"name":"SECRET"}'],
    ['customers.contacts', '"contacts":[{"email":"SECRET"}]'],
    ['customer_contacts.email', '"contacts":[{"id":"1","email":"SECRET"}]'],
    ['customers.contacts.email', '"contacts":[{"id":"1","email":"SECRET"}]'],
    ['customers.metadata', '"metadata":{"rut":"SECRET"}'],
    ['customers.metadata.rut', '"metadata":{"rut":"SECRET","x":1}'],
    ['customers.metadata.people.rut', '"metadata":{"people":[{"rut":"SECRET"},[{"rut":"SECRET"}]]}'],
    ['customers._extra.nick', '"nick":"SECRET"'],
    ['customers._extra.nick.name', '"nick":{"name":"SECRET"}'],
    ['customer_contacts._extra.nick', '"contacts":[{"nick":"SECRET"}]'],
    ['customers._extra', '"nick":"SECRET"'],
    ['customers._extra', '"country":{"nick":"SECRET"}'],
    // Of another shape than the schema says: kept nowhere, for nobody can say where in it the private part is.
    ['customers.email', '"email":{"work":"SECRET"}'],
    ['customers.country.name', '"country":["SECRET"]'],
    ['customers.contacts.email', '"contacts":{"first":{"email":"SECRET"}}'],
    ['customers.contacts.email', '"contacts":["SECRET"]'],
    ['customers.metadata.rut', '"metadata":"SECRET"'],
    ['customers._extra.nick.name', '"nick":"SECRET"'],
  ])('%s is written nowhere in %s', (name, field) => {
    expect(encode({}, `{"id":"cus_1",${field}}`).text).toContain('SECRET')
    expect(encode({ exclude: [name] }, `{"id":"cus_1",${field}}`).text).not.toContain('SECRET')
    // Nor where the record is rejected.
    expect(encode({ exclude: [name] }, `{${field}}`)).toMatchObject({ encoded: { rejected: { rows: 1 } } })
    expect(encode({ exclude: [name] }, `{${field}}`).text).not.toContain('SECRET')
  })

  test('has no column, and the others stay', () => {
    const tables = toTables(customers, { exclude: ['customers.email', 'customers.country', 'plans.sku'] })
    const all = toTables(customers)
    const gone = [
      'email',
      'country_id',
      'country_name',
      'country_code',
      'country_has_regulation',
      'country_currencies',
    ]
    expect(tables[0]?.columns).toEqual(all[0]?.columns.filter(({ name }) => !gone.includes(name)))
    expect(tables[1]).toEqual(all[1])
    expect(toTables(customers, { exclude: ['customers.contacts'] })).toHaveLength(1)
  })

  test.each([
    ['customers.metadata.rut', '"metadata":"SECRET"', { 'customers.metadata': 'text like AAAAAA' }],
    ['customers.country.name', '"country":["SECRET"]', { 'customers.country': 'a list' }],
    ['customers.contacts.email', '"contacts":["SECRET",null]', { 'customers.contacts': 'text like AAAAAA' }],
  ])('%s takes %s with it, which counts as drift and not as an absent field', (name, field, examples) => {
    const { drift } = encode({ exclude: [name] }, `{"id":"cus_1",${field}}`).encoded
    const shown = Object.entries(drift.misfits).map(([path, { example }]) => [path, example])
    expect(Object.fromEntries(shown)).toEqual(examples)
    expect(drift.absent['customers']).not.toContain(Object.keys(examples)[0]?.split('.')[1])
  })

  test('of a JSON cell leaves the rest of the cell', () => {
    const { row } = encode(
      { exclude: ['customers.metadata.rut'] },
      '{"id":"1","metadata":{"rut":"x","n":0.10}}',
    )
    expect(JSON.stringify(row?.['metadata'])).toBe('{"n":0.10}')
  })
})

describe('a hashed field', () => {
  const hashKey = 'k'

  test.each([
    ['customers.tax_id', '"tax_id":"76.1-K"', 'tax_id', '76.1-K'],
    ['customers.tax_id', '"tax_id":76.10', 'tax_id', '76.10'],
    ['customers.tax_id', '"tax_id":{"a":1.0}', 'tax_id', '{"a":1.0}'],
    ['customers.aggregations_balance', '"aggregations":{"balance":1.0}', 'aggregations_balance', '1.0'],
  ])('%s is the keyed hash of what was sent in %s', (name, field, column, text) => {
    const { row, encoded } = encode({ hash: [name], hashKey }, `{"id":"cus_1",${field}}`)
    expect(row?.[column]).toBe(hmac(text))
    expect(encoded.drift).toMatchObject({ misfits: {}, unknownFields: {} })
  })

  test('is hashed inside JSON cells and _extra too', () => {
    const hash = ['customers.metadata.rut', 'customers._extra.nick']
    const { row } = encode({ hash, hashKey }, '{"id":"1","metadata":{"rut":"x"},"nick":"y"}')
    expect(row).toMatchObject({ metadata: { rut: hmac('x') }, _extra: { nick: hmac('y') } })
  })

  test('that is the id is hashed the same way in the child tables, and where a hashed column names it', () => {
    const { encoder, encoded, row } = encode(
      { hash: ['customers.id', 'customers.contacts.customer'], hashKey },
      '{"id":"cus_1","contacts":[{"customer":"cus_1"}]}',
    )
    const hash = hmac('cus_1')
    expect(row?.['id']).toBe(hash)
    const [contact] = readTable(encoder, encoded, 'customer_contacts')
    expect(contact).toMatchObject({ customer_id: hash, customer: hash })
  })
})

describe('a name that means no field', () => {
  test.each([
    [{ exclude: ['customers.emial'] }, 'There is no field customers.emial. Did you mean customers.email?'],
    [{ exclude: ['custmers.email'] }, 'There is no field custmers.email. Did you mean customers?'],
    [{ exclude: ['tax_id'] }, 'There is no field tax_id. Did you mean customers.tax_id?'],
    [{ hash: ['email'] }, 'Did you mean customers.email or customer_contacts.email?'],
    [{ exclude: ['customers.country.nmae'] }, 'Did you mean customers.country_name?'],
    [{ exclude: ['customers.email.work'] }, 'There is no field customers.email.work.'],
    [{ exclude: ['subscription_lines.plam'] }, 'Did you mean subscription_lines.plan?'],
    [{ exclude: ['customers'] }, 'There is no field customers.'],
  ])('is refused with the nearest one (%j)', (privacy, sentence) => {
    expect(() => checkPrivacy(resources, privacy)).toThrow(
      expect.objectContaining({ name: 'UnknownFieldError', message: expect.stringContaining(sentence) }),
    )
  })

  test.each([
    [{ exclude: ['customers.id'] }, 'customers.id tells the rows'],
    [{ exclude: ['customer_contacts.position'] }, 'customer_contacts.position tells the rows'],
    [{ hash: ['customer_contacts.position'], hashKey: 'k' }, 'customer_contacts.position tells the rows'],
    [{ hash: ['customers.contacts'], hashKey: 'k' }, 'customers.contacts holds many fields'],
    [{ hash: ['customers.tax_id'] }, 'Hashing needs a secret key'],
    [{ hash: ['customers.email'], exclude: ['customers.email'], hashKey: 'k' }, 'both excluded and hashed'],
    [{ exclude: ['customers._extra.email'] }, 'name it customers.email'],
    [{ hash: ['customers._extra.country'], hashKey: 'k' }, 'name it customers.country'],
  ])('or a field that must stay is refused with a sentence (%j)', (privacy, sentence) => {
    expect(() => checkPrivacy(resources, privacy)).toThrow(
      expect.objectContaining({ name: 'PrivacyRefusedError', message: expect.stringContaining(sentence) }),
    )
  })

  test('of another resource is passed over by an encoder, and is fine', () => {
    expect(() => checkPrivacy(resources, { exclude: ['plans.sku', 'customers.email'] })).not.toThrow()
    expect(toTables(customers, { exclude: ['plans.sku'] })).toEqual(toTables(customers))
  })
})

test.each([
  ['customers.contacts.email', 'customer_contacts.email', ['customers.contacts.email']],
  ['customers.country.id', 'customers.country_id', ['customers.country.id']],
  ['plans.name', 'customers.tax_id', ['customers.tax_id']],
  ['customers.contacts.email', 'customers.contacts', ['customers.contacts']],
])('%s and %s are the fields %j of customers, however they are named', (one, other, fields) => {
  for (const names of [
    [one, other],
    [other, one, other],
  ])
    expect(toFields(listResources.customers, { names, action: 'exclude' })).toEqual(fields)
})
