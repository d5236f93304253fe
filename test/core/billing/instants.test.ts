import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isDate, isTimestamp, toInstant, toTimestamp } from '../../../core/billing/instants.ts'
import { seed } from '../reading/any-list.ts'

test('reads the timestamps of the service to the microsecond', () => {
  expect(toInstant('1970-01-01T00:00:00Z')).toBe(0)
  expect(toInstant('2020-10-15T13:26:15.356289-03:00')).toBe(1_602_779_175_356_289)
  expect(toInstant('2020-10-15T13:26:15-03:00')).toBe(1_602_779_175_000_000)
  expect(toInstant('2020-10-15T13:26:15.3-03:00')).toBe(1_602_779_175_300_000)
  expect(toInstant('2020-10-15T13:26:15.3562891239Z')).toBe(1_602_768_375_356_289)
  expect(toInstant('2024-02-29T23:59:59.999999+05:45')).toBe(1_709_230_499_999_999)
  expect(toInstant('1969-12-31T23:59:59.999999Z')).toBe(-1)
})

test.for([
  ['no text', 1_602_779_175],
  ['nothing', null],
  ['no time', '2020-10-15'],
  ['no offset', '2020-10-15T13:26:15'],
  ['a space for the T', '2020-10-15 13:26:15Z'],
  ['a day that is not', '2023-02-29T00:00:00Z'],
  ['month 13', '2023-13-01T00:00:00Z'],
  ['hour 24', '2023-02-01T24:00:00Z'],
  ['second 60', '2023-02-01T10:00:60Z'],
  ['an empty fraction', '2023-02-01T10:00:00.Z'],
  ['half an offset', '2023-02-01T10:00:00+03'],
  ['an offset that is not', '2023-02-01T10:00:00+24:00'],
  ['something behind', '2023-02-01T10:00:00Zx'],
  ['no seconds', '2020-10-15T13:26Z'],
  ['an offset without its colon', '2020-10-15T13:26:15-0300'],
  ['a line break behind', '2020-10-15T13:26:15Z\n'],
  ['a blank before', ' 2020-10-15T13:26:15Z'],
] as const)('takes %s for no instant', ([, text]) => {
  expect(toInstant(text)).toBeUndefined()
  expect(isTimestamp(String(text))).toBe(false)
})

test('a time that no number holds exactly is not an instant, so that nobody compares a rounded one', () => {
  for (const year of ['0001', '2300', '9999']) {
    const times = ['00Z', '00.5Z', '00.000001Z'].map((rest) => `${year}-01-01T00:00:${rest}`)
    const [whole, half, inexact] = times.map(toInstant)
    expect([whole! / 1_000, half! / 1_000]).toEqual(times.slice(0, 2).map((time) => Date.parse(time)))
    expect(inexact).toBeUndefined()
  }
})

test('an instant is written to the microsecond, however far from now', () => {
  for (const time of [
    '0001-01-01T00:00:00.001024Z',
    '5000-01-01T00:00:00.999936Z',
    '9999-01-01T00:00:00.001024Z',
  ])
    expect(toTimestamp(toInstant(time)!)).toBe(time)
})

test('agrees with Date in every offset, and keeps what Date drops', () => {
  const property = fc.property(
    fc.date({ min: new Date('1685-01-01'), max: new Date('2254-12-31'), noInvalidDate: true }),
    fc.integer({ min: 0, max: 999 }),
    fc.integer({ min: -14 * 60, max: 14 * 60 }),
    (date, micros, offset) => {
      const local = new Date(date.getTime() + offset * 60_000)
        .toISOString()
        .replace('Z', String(micros).padStart(3, '0'))
      const pad = (part: number) => String(part).padStart(2, '0')
      const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
      const text = `${local}${offset < 0 ? '-' : '+'}${pad(hours)}:${pad(minutes)}`
      const instant = date.getTime() * 1000 + micros
      expect(toInstant(text)).toBe(instant)
      expect(isTimestamp(text)).toBe(true)
      expect(toInstant(toTimestamp(instant))).toBe(instant)
    },
  )
  fc.assert(property, { seed, numRuns: 2000 })
})

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
