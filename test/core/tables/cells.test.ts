import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { quoteCell, toJsonCell } from '../../../core/tables/cell.ts'
import { isDate, isTimestamp } from '../../../core/billing/instants.ts'

test('a date exists if the calendar of the machine has it', () => {
  const part = (min: number, max: number) => fc.integer({ min, max })
  const leap = [1900, 2000, 2023, 2024].map((year): [number, number, number] => [year, 2, 29])
  fc.assert(
    fc.property(part(0, 9_999), part(0, 13), part(0, 32), (year, month, day) => {
      const two = (number: number) => `${number}`.padStart(2, '0')
      const text = `${`${year}`.padStart(4, '0')}-${two(month)}-${two(day)}`
      const date = new Date(`${text}T00:00:00Z`)
      const exists = year > 0 && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
      expect([isDate(text), isTimestamp(`${text}T00:00:00Z`)]).toEqual([exists, exists])
    }),
    { seed: 20_265, numRuns: 5_000, examples: [...leap, [0, 1, 1], [1, 1, 1], [9_999, 12, 31]] },
  )
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
