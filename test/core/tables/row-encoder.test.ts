import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { anyCharacter } from '../../any-character.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { addDrift, noDrift } from '../../../core/tables/drift.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { parseRows, readTable, stringifyRows } from './csv.ts'

const { customers, subscriptions, retentions } = listResources
const encoder = createRowEncoder({ resource: customers })

function encodeOne(json: string, resource = customers) {
  const encoder = createRowEncoder({ resource })
  const encoded = encoder.encode([parseLossless(json)])
  return { encoded, encoder, row: readTable(encoder, encoded, resource.name)[0]! }
}

/** JSON text of a row's column, numbers digit for digit. */
const json = (value: unknown) => JSON.stringify(value)

/** The JSON of a record with one value, at its place: `state.id` is the id of the object `state`. */
function recordWith(place: string, sent: string) {
  const [field = '', inner] = place.split('.')
  const extra = `"${field}":${inner === undefined ? sent : `{"${inner}":${sent}}`}`
  return { record: `{"id":"cus_1",${extra}}`, extra: `{${extra}}` }
}

describe('a value', () => {
  test.each([
    ['a decimal sent as text', 'aggregations.balance', '"0.10"', '0.10'],
    ['more digits than a float has', 'aggregations.sales', '12345678901234567.89'],
    ['an exponent', 'aggregations.sales', '1e400'],
    ['the smallest integer of 64 bits', 'state.id', '-9223372036854775808'],
    ['JSON with a large number', 'metadata', '{"a":1e9999}'],
    ['JSON with a backslash before u0000', 'metadata', '{"a":"\\\\u0000"}'],
    ['an integer sent as text', 'state.id', '"13"', '13'],
    ['a number in a text column', 'zip_code', '7500000', '"7500000"'],
    ['true sent as text', 'send_invoices', '"true"', 'true'],
    ['a timestamp without microseconds', 'created', '"2020-10-15T13:26:15Z"'],
    ['an empty text', 'manager', '""'],
    ['null', 'manager', 'null'],
    ['text with quotes, commas and line ends', 'name', '"a \\"b\\", c\\r\\nd"'],
  ])('%s arrives as it was sent', (_title, place, sent, kept = sent) => {
    const { encoded, row } = encodeOne(recordWith(place, sent).record)
    expect(json(row[place.replace('.', '_')])).toBe(kept)
    expect(row['_extra']).toBeNull()
    expect(encoded.drift).toMatchObject({ misfits: {}, unknownFields: {} })
  })

  test.each([
    ['text in a number column', 'aggregations.balance', '"n/a"'],
    ['a decimal with zeros in front', 'aggregations.balance', '"00.10"'],
    ['a decimal comma', 'aggregations.balance', '"1500,50"'],
    ['a number with blanks', 'aggregations.balance', '" 1"'],
    ['an identifier with zeros in front', 'state.id', '"007"'],
    ['a number for a boolean', 'send_invoices', '1'],
    ['a day that does not exist', 'created', '"2023-02-29T00:00:00Z"'],
    ['a timestamp without its offset', 'created', '"2023-02-28T00:00:00"'],
    ['an object where a text is expected', 'name', '{"first":1.10}'],
    ['a text where an object is expected', 'country', '"CL"', 'country_id'],
    ['an object where a list is expected', 'contacts', '{"id":"con_1","n":0.10}', 'manager'],
    ['a lone surrogate', 'name', '"a\\ud800b"'],
    ['NUL', 'name', '"a\\u0000b"'],
    ['an integer of more than 64 bits', 'state.id', '9223372036854775808'],
    ['JSON with NUL', 'metadata', '{"a":["x\\u0000"]}'],
    ['JSON with a lone surrogate in a name', 'metadata', '{"\\ud83d":1}'],
    ['JSON with a number beyond numeric', 'metadata', '{"a":1e10000}'],
  ])(
    'that its column can not hold (%s) is kept in _extra at its place, and counted',
    (_title, place, sent, column = place.replace('.', '_')) => {
      const { record, extra } = recordWith(place, sent)
      const { encoded, row } = encodeOne(record)
      expect(row[column]).toBeNull()
      expect(json(row['_extra'])).toBe(extra)
      expect(encoded.drift.misfits).toEqual({
        [`customers.${place}`]: { count: 1, example: expect.any(String) },
      })
    },
  )

  test('of 5 MB arrives whole', () => {
    const long = `añ",\n${'x'.repeat(45)}`.repeat(100_000)
    const { row } = encodeOne(JSON.stringify({ id: 'cus_1', address: long, metadata: { long } }))
    expect(row['address'] === long).toBe(true)
    expect(json(row['metadata']) === json({ long })).toBe(true)
  })
})

describe('an unknown field', () => {
  test('is kept in _extra at its place, digit for digit, whatever it is called', () => {
    const extra = '{"__proto__":{"x":0.10},"constructor":null,"country":{"flag":"🇨🇱","tz":[-3.0]},"a.b":1}'
    const { row, encoded } = encodeOne(
      '{"id":"cus_1","__proto__":{"x":0.10},"constructor":null,"country":{"id":"CL","flag":"🇨🇱","tz":[-3.0]},"a.b":1}',
    )
    expect(new Set(Object.keys(row['_extra'] as object))).toEqual(
      new Set(['__proto__', 'constructor', 'country', 'a.b']),
    )
    expect(json(row['_extra']).length).toBe(extra.length)
    expect(json((row['_extra'] as Record<string, unknown>)['country'])).toBe('{"flag":"🇨🇱","tz":[-3.0]}')
    expect(json(row['_extra'])).toContain('"__proto__":{"x":0.10}')
    expect(row['country_id']).toBe('CL')
    expect(encoded.drift).toMatchObject({
      misfits: {},
      unknownFields: {
        'customers.__proto__': 1,
        'customers.constructor': 1,
        'customers.country.flag': 1,
        'customers.country.tz': 1,
        'customers.a.b': 1,
      },
    })
  })

  test('of a child is kept with the child', () => {
    const { encoder, encoded } = encodeOne(
      '{"id":"cus_1","contacts":[{"id":"con_1","role":"cfo"},{"id":"con_2"}]}',
    )
    const rows = readTable(encoder, encoded, 'customer_contacts')
    expect(rows.map((row) => [row['customer_id'], row['position'], row['id'], json(row['_extra'])])).toEqual([
      ['cus_1', 1, 'con_1', '{"role":"cfo"}'],
      ['cus_1', 2, 'con_2', 'null'],
    ])
  })
})

describe('a list', () => {
  test('inside a list has rows that say where they hang', () => {
    const { encoder, encoded } = encodeOne(
      '{"id":"sub_1","addons":[{"addon":"a"},{"addon":"b","rates":[{"percentage":10.0},{"percentage":"5.50"}]}]}',
      subscriptions,
    )
    expect(readTable(encoder, encoded, 'subscription_addons').map((row) => row['addon'])).toEqual(['a', 'b'])
    const rates = readTable(encoder, encoded, 'subscription_addon_rates')
    expect(rates.map((row) => json(Object.values(row)))).toEqual([
      '["sub_1",2,1,null,10.0,null,null]',
      '["sub_1",2,2,null,5.50,null,null]',
    ])
  })

  test('keeps the place of an item that is not an object, and the item', () => {
    const { encoder, encoded } = encodeOne('{"id":"cus_1","contacts":["con_0",{"id":"con_1"},null,[1.0]]}')
    const rows = readTable(encoder, encoded, 'customer_contacts')
    expect(rows.map((row) => json([row['position'], row['id'], row['_extra']]))).toEqual([
      '[1,null,"con_0"]',
      '[2,"con_1",null]',
      '[3,null,null]',
      '[4,null,[1.0]]',
    ])
    expect(encoded.drift.misfits).toEqual({ 'customers.contacts': { count: 3, example: 'text like aaa_9' } })
  })

  test('that is null, empty or absent has no rows', () => {
    const encoded = encoder.encode([{ id: '1', contacts: null }, { id: '2', contacts: [] }, { id: '3' }])
    expect(encoded.tables.map(({ rows }) => rows)).toEqual([3, 0])
  })
})

describe('a record', () => {
  test.each([
    ['cus_1', 'the record is not an object'],
    [null, 'the record is not an object'],
    [[{ id: 'cus_1' }], 'the record is not an object'],
    [JSON.rawJSON('1.0'), 'the record is not an object'],
    [{ name: 'x' }, 'the record has no id'],
    [{ id: null }, 'the record has no id'],
    [{ id: '' }, 'the record has no id'],
    [{ id: { a: 1 }, contacts: [{}] }, "the record's id can't be kept as text"],
    [{ id: true }, "the record's id can't be kept as text"],
  ])('that is not an object or has no id is rejected, whole (%j)', (record, reason) => {
    const encoded = encoder.encode([record, { id: 'cus_2' }])
    expect(encoded.rejected).toEqual({ text: `${JSON.stringify({ reason, record })}\n`, rows: 1 })
    expect(encoded.tables.map(({ rows }) => rows)).toEqual([1, 0])
  })

  test('that has no usable id is rejected although a hash of it would be one', () => {
    const encoder = createRowEncoder({
      resource: customers,
      privacy: { hash: ['customers.id'], hashKey: 'key' },
    })
    const { rejected, tables } = encoder.encode([{ id: { a: 1 } }, { id: false }, { id: 'cus_1' }])
    expect([rejected.rows, tables[0]!.rows]).toEqual([2, 1])
  })

  test('with a number as its id gives it to its children', () => {
    const { encoder, encoded, row } = encodeOne('{"lines":[{"amount":0.10}],"id":42}', retentions)
    expect(row['id']).toBe(42)
    expect(readTable(encoder, encoded, 'retention_lines')[0]).toMatchObject({ retention_id: 42, position: 1 })
  })

  test('leaves nothing behind for the next one', () => {
    encoder.encode([{ id: '1', undocumented: 'x', contacts: ['y'] }])
    const encoded = encoder.encode([{ id: '2' }])
    expect(encoded).toMatchObject({
      drift: { misfits: {}, unknownFields: {} },
      rejected: { text: '', rows: 0 },
    })
    expect(readTable(encoder, encoded, 'customers')).toMatchObject([{ id: '2', _extra: null }])
  })
})

describe('the CSV text', () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ';', "'", '\t', ' ', 'ñ', '😀', '\\') }),
  )
  const clean = text.filter((value) => value.isWellFormed() && !value.includes('\0'))
  const nullable = fc.option(clean)
  const jsonValue = fc.jsonValue()

  test('is byte for byte what csv-stringify writes for the same values', () => {
    const record = fc.record({
      id: clean.filter((value) => value !== ''),
      name: nullable,
      country: fc.option(
        fc.record({ id: nullable, code: nullable, has_regulation: fc.option(fc.boolean()) }),
      ),
      metadata: jsonValue,
      tax_settings: jsonValue,
      contacts: fc.array(fc.record({ id: nullable, email: nullable, invoicing: fc.option(fc.boolean()) })),
      aggregations: fc.record({ sales: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
      undocumented: clean,
    })
    fc.assert(
      fc.property(fc.array(record), (records) => {
        const sent = records.map((record) => JSON.parse(JSON.stringify(record)) as typeof record)
        const encoded = encoder.encode(sent)
        const expected = [sent.map(customerCells), sent.flatMap(contactCells)].map(stringifyRows)
        expect(encoded.tables.map(({ text }) => text)).toEqual(expected)
      }),
      { seed: 20_261, numRuns: 400 },
    )
  })

  test('gives back every JSON value that was encoded, number for number', () => {
    fc.assert(
      fc.property(fc.jsonValue(), clean, (value, note) => {
        const sent = JSON.parse(JSON.stringify(value)) as unknown
        const encoded = encoder.encode([{ id: 'cus_1', metadata: sent, unknown: sent, name: note }])
        const [row] = readTable(encoder, encoded, 'customers')
        expect(json(row?.['metadata'])).toBe(json(sent))
        expect(json(row?.['_extra'])).toBe(json({ unknown: sent }))
        expect(row?.['name']).toBe(note)
      }),
      { seed: 20_262, numRuns: 400 },
    )
  })

  test('never loses a value, whatever kind of JSON stands in whatever field', () => {
    const anything = fc.oneof(
      fc.jsonValue(),
      text,
      fc.constant('2020-02-30'),
      fc.constantFrom('true', '1.5', '-0'),
    )
    const keys = [
      'name',
      'country',
      'state',
      'metadata',
      'contacts',
      'sources',
      'aggregations',
      'created',
      'x',
    ]
    const record = fc.dictionary(fc.constantFrom(...keys), anything, { noNullPrototype: true })
    fc.assert(
      fc.property(record, (fields) => {
        const sent = JSON.parse(JSON.stringify({ ...fields, id: 'cus_1' })) as Record<string, unknown>
        const encoded = encoder.encode([sent])
        const kept = encoded.tables.map((rows) => parseRows(rows.text).flat().join('\n')).join('\n')
        for (const leaf of leaves(sent)) expect(kept).toContain(leaf)
      }),
      { seed: 20_263, numRuns: 1_000 },
    )
  })

  const bool = (value: boolean | null | undefined) =>
    value === null || value === undefined ? null : `${value}`
  const cells = (table: number, values: Record<string, string | null>) =>
    encoder.tables[table]!.columns.map((column) => values[column.name] ?? null)
  type Sent = {
    id: string
    name: string | null
    country: { id: string | null; code: string | null; has_regulation: boolean | null } | null
    metadata: unknown
    tax_settings: unknown
    contacts: { id: string | null; email: string | null; invoicing: boolean | null }[]
    aggregations: { sales: number }
    undocumented: string
  }
  const customerCells = (record: Sent) =>
    cells(0, {
      id: record.id,
      name: record.name,
      country_id: record.country?.id ?? null,
      country_code: record.country?.code ?? null,
      country_has_regulation: bool(record.country?.has_regulation),
      metadata: record.metadata === null ? null : json(record.metadata),
      tax_settings: record.tax_settings === null ? null : json(record.tax_settings),
      aggregations_sales: `${record.aggregations.sales}`,
      _extra: json({ undocumented: record.undocumented }),
    })
  const contactCells = (record: Sent) =>
    record.contacts.map((contact, index) =>
      cells(1, {
        customer_id: record.id,
        position: `${index + 1}`,
        id: contact.id,
        email: contact.email,
        invoicing: bool(contact.invoicing),
      }),
    )
})

/** The text of every scalar in a value that is not null or empty, as JSON writes it or as a cell holds it. */
function leaves(value: unknown): string[] {
  if (value === null || value === '') return []
  if (typeof value !== 'object') {
    const text = JSON.stringify(value).replace(/^"|"$/g, '')
    const isPlain = /^[\x20-\x7e]*$/.test(text) && !/["\\]/.test(text)
    return isPlain ? [text] : []
  }
  return Object.values(value).flatMap(leaves)
}

describe('a record nested deeper than the stack', () => {
  const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}"0.10"${'}'.repeat(depth)}`)
  const lists = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`)

  test.each([
    ['a field of no column', 3_000, { x: nested(3_000) }],
    ['lists in a field of no column', 3_000, { x: lists(3_000) }],
    ['a field of an object', 50_000, { contacts: [{ id: 'c', x: nested(50_000) }] }],
    ['lists', 50_000, { contacts: lists(50_000) }],
  ])('is rejected with its id, and the records beside it are kept: %s of %i', (_, _depth, deep) => {
    const encoder = createRowEncoder({ resource: customers })
    const encoded = encoder.encode([
      { id: 'before', contacts: [{}] },
      { id: 'deep', ...deep },
      { id: 'after' },
    ])
    expect(readTable(encoder, encoded, 'customers').map(({ id }) => id)).toEqual(['before', 'after'])
    expect(encoded.rejected).toEqual({
      rows: 1,
      text: '{"reason":"the record is nested too deeply","record":{"id":"deep"}}\n',
    })
    expect(encoded.tables.map(({ rows }) => rows)).toEqual(
      encoder.encode([{ id: 'before', contacts: [{}] }, { id: 'after' }]).tables.map(({ rows }) => rows),
    )
    expect(encoded.drift).toMatchObject({ misfits: {}, unknownFields: {} })
  })

  test('is rejected too where it has no id, or is not an object', () => {
    const { rejected } = encoder.encode([{ x: nested(50_000) }, lists(50_000), { id: nested(50_000) }])
    expect(rejected.rows).toBe(3)
    for (const line of rejected.text.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('reason')
  })

  test('is rejected under a hash too', () => {
    const privacy = { hash: ['customers.name'], hashKey: 'key' }
    const encoder = createRowEncoder({ resource: customers, privacy })
    expect(encoder.encode([{ id: 'deep', name: lists(50_000) }]).rejected.rows).toBe(1)
  })

  test('is kept whole up to 500 deep', () => {
    const { rejected, tables } = encoder.encode([{ id: 'a', x: nested(400) }])
    expect(rejected.rows).toBe(0)
    expect(tables[0]!.text).toContain('0.10')
  })

  test('is kept at 500 deep and rejected at 501, however short its JSON', () => {
    const empty = (depth: number): unknown => JSON.parse('['.repeat(depth) + ']'.repeat(depth))
    const { rejected, tables } = encoder.encode([
      { id: 'kept', metadata: empty(500) },
      { id: 'deep', metadata: empty(501) },
    ])
    expect(tables[0]!.text).toMatch(/^kept,.*\n$/)
    expect(rejected.text).toContain('"record":{"id":"deep"}')
  })
})

describe('drift', () => {
  const encodeAll = (records: readonly object[]) => {
    const encoder = createRowEncoder({ resource: customers })
    return records.map((record) => encoder.encode([parseLossless(JSON.stringify(record))]).drift)
  }

  test.each([
    ['25/03/2026 12:00', 'text like 99/99/9999 99:99'],
    ['Ñuñoa 5°', 'text like Aaaaa 9?'],
    ['', 'an empty text'],
    ['x'.repeat(100), `text like ${'a'.repeat(24)}...`],
    [1_774_440_000, 'a number'],
    [true, 'true or false'],
    [['a'], 'a list'],
    [{ date: 'x' }, 'an object'],
  ])('shows what %j looks like and not what it is', (value, example) => {
    expect(encodeAll([{ id: 'a', created: value }])[0]?.misfits).toEqual({
      'customers.created': { count: 1, example },
    })
  })

  test('of children, of nested objects and of further records adds up, and keeps the first example', () => {
    const drift = noDrift()
    const records = [
      { id: 'a', contacts: [{ id: 'c', created: 1 }, { created: '' }], country: { iso: 'CL' } },
      { id: 'b', contacts: [{ created: 'x', role: 'cfo' }], country: { iso: 'PE' } },
    ]
    for (const one of encodeAll(records)) addDrift(drift, one)
    expect(drift).toMatchObject({
      misfits: { 'customers.contacts.created': { count: 3, example: 'a number' } },
      unknownFields: { 'customers.country.iso': 2, 'customers.contacts.role': 1 },
    })
  })

  test('names the fields that no object had, of objects that occurred', () => {
    const drift = noDrift()
    const whole = Object.fromEntries(Object.keys(customers.schema.shape).map((name) => [name, null]))
    const records = [
      { ...whole, id: 'a', contacts: [] },
      { ...whole, id: 'b', phone: undefined, country: { id: 'CL', name: null, code: '56' }, contacts: [] },
    ]
    for (const one of encodeAll(records)) addDrift(drift, one)
    expect(drift.absent).toEqual({ customers: [], 'customers.country': ['has_regulation', 'currencies'] })
  })

  test('has no half of a pair of surrogates in the name of a field: it is no JSON for DuckDB', () => {
    const [encoded] = encodeAll([{ id: 'a', 'half\ud83d': 1 }])
    expect(encoded?.unknownFields).toEqual({ 'customers.half\ufffd': 1 })
  })

  test('of a service that names fields after its records stays small', () => {
    const records = Array.from({ length: 1_000 }, (_, at) => ({ id: `${at}`, [`of_${at}`]: 1 }))
    const drift = noDrift()
    for (const one of encodeAll(records)) addDrift(drift, one)
    expect(Object.keys(drift.unknownFields)).toHaveLength(50)
  })
})
