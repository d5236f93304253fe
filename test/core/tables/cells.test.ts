import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { quoteCell, toJsonCell } from '../../../core/tables/cell.ts'
import { decodeRow, parseLossless } from './csv.ts'
import { isDate, isTimestamp } from '../../../core/billing/instants.ts'
import type { Table } from '../../../core/tables/table.ts'

describe('dates', () => {
  test.each(['2024-02-29', '2000-02-29', '0001-01-01', '9999-12-31', '2023-01-31'])('%s exists', (text) => {
    expect(isDate(text)).toBe(true)
    expect(isTimestamp(`${text}T00:00:00Z`)).toBe(true)
  })

  test.each([
    '2023-02-29',
    '1900-02-29',
    '2023-04-31',
    '2023-13-01',
    '2023-00-10',
    '2023-01-00',
    '0000-01-01',
  ])('%s does not exist', (text) => {
    expect(isDate(text)).toBe(false)
    expect(isTimestamp(`${text}T00:00:00Z`)).toBe(false)
  })

  test('agree with the calendar of the machine', () => {
    const part = (min: number, max: number) => fc.integer({ min, max })
    fc.assert(
      fc.property(part(1, 9_999), part(0, 13), part(0, 32), (year, month, day) => {
        const two = (number: number) => `${number}`.padStart(2, '0')
        const text = `${`${year}`.padStart(4, '0')}-${two(month)}-${two(day)}`
        const date = new Date(`${text}T00:00:00Z`)
        const exists = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
        expect(isDate(text)).toBe(exists)
      }),
      { seed: 20_265, numRuns: 5_000 },
    )
  })
})

describe('timestamps', () => {
  test.each(['2020-10-15T13:26:15.356289-03:00', '2020-10-15T13:26:15Z', '2020-10-15T23:59:59.1+14:00'])(
    '%s is one',
    (text) => expect(isTimestamp(text)).toBe(true),
  )

  test.each([
    '2020-10-15',
    '2020-10-15T13:26:15',
    '2020-10-15T13:26Z',
    '2020-10-15 13:26:15Z',
    '2020-10-15T24:00:00Z',
    '2020-10-15T13:60:00Z',
    '2020-10-15T13:26:15.Z',
    '2020-10-15T13:26:15-0300',
    '2020-10-15T13:26:15Z\n',
    ' 2020-10-15T13:26:15Z',
  ])('%j is none', (text) => expect(isTimestamp(text)).toBe(false))
})

describe('a JSON cell', () => {
  test('is what quoting the JSON gives', () => {
    const value = fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.string({ unit: 'binary' }))
    fc.assert(
      fc.property(value, (value) => {
        const sent = JSON.parse(JSON.stringify(value)) as unknown
        expect(toJsonCell(sent)).toBe(quoteCell(JSON.stringify(sent)))
      }),
      { seed: 20_266, numRuns: 500 },
    )
  })

  test.each([
    '{}',
    '[]',
    '[[]]',
    '[1]',
    '[[1.0]]',
    '0.10',
    '-0',
    'true',
    '"\\ud800"',
    '{"__proto__":1e400}',
    '[null]',
  ])('of %s too', (json) => expect(toJsonCell(parseLossless(json))).toBe(quoteCell(json)))
})

describe('a row that is none of its table', () => {
  const table: Table = {
    name: 'plans',
    resource: 'plans',
    key: ['id'],
    columns: [
      { name: 'id', kind: 'text', source: 'plans.id' },
      { name: 'exempt', kind: 'boolean', source: 'plans.exempt' },
      { name: '_extra', kind: 'json', source: 'plans' },
    ],
  }

  test.each([
    [['p'], 'A row of plans has 3 cells, and this one 1.'],
    [['p', 'yes', null], 'plans.exempt is boolean, and a row has yes there.'],
    [['p', null, '{'], 'plans._extra is json, and a row has { there.'],
  ])('is refused: %j', (cells, sentence) => {
    expect(() => decodeRow(table, cells)).toThrow(
      expect.objectContaining({ name: 'MalformedRowError', message: sentence }),
    )
  })
})
