import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  conventionsOf,
  type DateOrder,
  type DecimalMark,
  readDate,
  readNumber,
  writeDate,
} from '../../../core/imports/cells/notation.ts'
import { bodiesOf, fileOf, problemsOf } from './csv-file.ts'

const seed = 20261121

/** How people write a number, and what it is without a decimal mark, with a comma and with a point; '' is refused. */
const numbers: readonly [text: string, ...readings: [string, string, string]][] = [
  ['0012', '12', '12', '12'],
  ['1234', '1234', '1234', '1234'],
  ['-7', '-7', '-7', '-7'],
  ['+7', '7', '7', '7'],
  ['1.234', '1.234 or 1234', '1234', '1.234'],
  ['1,234', '1234 or 1.234', '1.234', '1234'],
  ['1.234,567', '1234.567', '1234.567', ''],
  [' -7,00 ', '-7.00', '-7.00', ''],
  ['-1.000', '-1.000 or -1000', '-1000', '-1.000'],
  ['12.50', '12.50', '', '12.50'],
  ['12,50', '12.50', '12.50', ''],
  ['0.125', '0.125', '', '0.125'],
  ['0,125', '0.125', '0.125', ''],
  [',5', '0.5', '0.5', ''],
  ['.5', '0.5', '', '0.5'],
  ['5,', '', '', ''],
  ['5.', '', '', ''],
  ['1.234.567', '1234567', '1234567', ''],
  ['1,234,567', '1234567', '', '1234567'],
  ['1.234,56', '1234.56', '1234.56', ''],
  ['1,234.56', '1234.56', '', '1234.56'],
  ['1.234.567,89', '1234567.89', '1234567.89', ''],
  ['1,234,567.89', '1234567.89', '', '1234567.89'],
  ['1 234', '', '', ''],
  ['1\u00a0234,56', '', '', ''],
  ["1'234.50", '', '', ''],
  ['12.3456.789', '', '', ''],
  ['12.34.56', '', '', ''],
  ['1,23,456.7', '', '', ''],
  ['1.23.456,7', '', '', ''],
  ['$1.500', '', '', ''],
  ['1.500 CLP', '', '', ''],
  ['(45)', '', '', ''],
  ['45-', '', '', ''],
  ['--1', '', '', ''],
  ['1e5', '', '', ''],
  ['7,65E+08', '', '', ''],
  ['1E-3', '', '', ''],
  ['19%', '', '', ''],
  ['٣', '', '', ''],
  ['1_000', '', '', ''],
  ['1.0', '1.0', '', '1.0'],
  ['12345678901234567.89', '12345678901234567.89', '', '12345678901234567.89'],
  ['NaN', '', '', ''],
  ['1/2', '', '', ''],
]

const marks: readonly (DecimalMark | undefined)[] = [undefined, ',', '.']

test.each(numbers)(
  'the number %j is read, asked about or refused, as its decimal mark says',
  (text, ...expected) => {
    const readings = marks.map((mark) => {
      const reading = readNumber(text, mark)
      if ('readings' in reading) return reading.readings.join(' or ')
      return 'value' in reading ? reading.value : ''
    })
    expect(readings).toEqual(expected)
  },
)

/** How people write a day, and what it is without an order, with day, month and year first; '' is refused. */
const dates: readonly [text: string, ...readings: [string, string, string, string]][] = [
  ['2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04'],
  ['2026-3-4', '2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04'],
  ['2026/03/04', '2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04'],
  ['2026.03.04', '2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04'],
  ['04-03-2026', '2026-03-04 or 2026-04-03', '2026-03-04', '2026-04-03', ''],
  ['4-3-2026', '2026-03-04 or 2026-04-03', '2026-03-04', '2026-04-03', ''],
  ['04/03/2026', '2026-03-04 or 2026-04-03', '2026-03-04', '2026-04-03', ''],
  ['25-03-2026', '2026-03-25', '2026-03-25', '', ''],
  ['25.03.2026', '2026-03-25', '2026-03-25', '', ''],
  ['03/25/2026', '2026-03-25', '', '2026-03-25', ''],
  ['05-05-2026', '2026-05-05', '2026-05-05', '2026-05-05', ''],
  ['31-02-2026', '', '', '', ''],
  ['29-02-2024', '2024-02-29', '2024-02-29', '', ''],
  ['29-02-2026', '', '', '', ''],
  ['00-01-2026', '', '', '', ''],
  ['04-03-26', '', '', '', ''],
  ['20260304', '', '', '', ''],
  ['2026-03-04T00:00:00Z', '', '', '', ''],
  ['2026-03-04T14:30:00-03:00', '', '', '', ''],
  ['04-03-2026 14:30', '', '', '', ''],
  ['2026-03', '', '', '', ''],
  ['4 mar 2026', '', '', '', ''],
  ['ayer', '', '', '', ''],
  [' 2026-03-04 ', '2026-03-04', '2026-03-04', '2026-03-04', '2026-03-04'],
  ['04-03/2026', '', '', '', ''],
  ['2026-13-01', '', '', '', ''],
  ['0000-01-01', '', '', '', ''],
]

const orders: readonly (DateOrder | undefined)[] = [undefined, 'dmy', 'mdy', 'ymd']

test.each(dates)('the date %j is read, asked about or refused, as its order says', (text, ...expected) => {
  const readings = orders.map((order) => {
    const reading = readDate(text, order)
    if ('readings' in reading) return reading.readings.join(' or ')
    return 'value' in reading ? reading.value : ''
  })
  expect(readings).toEqual(expected)
})

describe('a number', () => {
  test.each([
    ['$ 45.890', ',', '45.890'],
    ['(1.200,5)', ',', '-1.200,5'],
    ['CLP 12', undefined, '12'],
    ['R$\u00a01.234,50', ',', '1.234,50'],
    ['US$ 12', undefined, '12'],
    ['1.234,50-', ',', '-1.234,50'],
    ['−5', undefined, '-5'],
    [' $ -   ', ',', '0'],
    ['14,5%', ',', '14,5'],
    ['14.5 %', '.', '14.5'],
    ['19%', undefined, '19'],
  ] as const)('%s is answered with how to write it', (text, mark, fix) => {
    expect(readNumber(text, mark)).toMatchObject({ fix })
  })

  test('that is none without its signs either gets no advice', () => {
    expect(readNumber('$ doce', ',')).not.toHaveProperty('fix')
  })

  test('reads the same with a plus sign, which only the full patterns accept', () => {
    const number = fc.stringMatching(/^\d{0,5}([.,]\d{0,6}){0,2}$/)
    const mark = fc.constantFrom(undefined, '.', ',')
    fc.assert(
      fc.property(number, mark, (text, decimal) => {
        const [plain, signed] = [text, `+${text}`].map((one) => readNumber(one, decimal))
        if (!('message' in (signed ?? {}))) expect(plain).toEqual(signed)
        else expect(plain).toHaveProperty('message')
      }),
      { seed },
    )
  })

  test('comes back from however it was written', () => {
    const number = fc.tuple(
      fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
      fc.stringMatching(/^\d{0,12}$/),
    )
    fc.assert(
      fc.property(number, fc.constantFrom(',', '.'), fc.boolean(), ([whole, fraction], mark, grouped) => {
        const group = mark === ',' ? '.' : ','
        const text = grouped ? String(whole).replaceAll(/\B(?=(\d{3})+$)/g, group) : String(whole)
        const digits = fraction === '' ? String(whole) : `${whole}.${fraction}`
        const written = fraction === '' ? text : `${text}${mark}${fraction}`
        expect(readNumber(written, mark)).toEqual({ value: digits })
        const guess = readNumber(written)
        // Without a mark it is that number or an open question, never another number.
        if ('value' in guess) expect(guess.value).toBe(digits)
        else expect(guess).toMatchObject({ readings: expect.arrayContaining([digits]) as unknown })
      }),
      { seed },
    )
  })
})

describe('a date', () => {
  test.each([
    ['46106', 'dmy', '25-03-2026'],
    ['46106,0', undefined, '2026-03-25'],
    ['32873', 'ymd', undefined],
    ['32874', 'ymd', '1990-01-01'],
    ['73415', 'ymd', '2100-12-31'],
    ['73416', 'ymd', undefined],
    ['20260325', 'dmy', undefined],
  ] as const)('of the day number %s is answered with its day, if it is near', (text, order, fix) => {
    const reading = readDate(text, order)
    expect('fix' in reading ? reading.fix : undefined).toBe(fix)
  })

  test('is answered with what was meant where that is plain', () => {
    expect(readDate('2026-03-04 00:00:00')).toMatchObject({ fix: '2026-03-04' })
    expect(readDate('12/25/2026', 'dmy')).toMatchObject({ fix: '2026-12-25' })
  })

  test('comes back from however people write it', () => {
    const day = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
    fc.assert(
      fc.property(day, fc.constantFrom('dmy', 'mdy', 'ymd'), (instant, order) => {
        const date = instant.toISOString().slice(0, 10)
        expect(readDate(writeDate(date, order), order)).toEqual({ value: date })
      }),
      { seed },
    )
  })
})

describe('a file', () => {
  const header = 'supplier;document;number;date;lines.1.name;lines.1.amount\n'

  test('is stopped by what reads in two ways, once a column, with both readings', async () => {
    const path = await fileOf(`${header}s;7;1;04-03-2026;x;45.890\ns;7;2;05-03-2026;x;12.345\n`)
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([
      'row 2, date: 04-03-2026 could mean 2026-03-04 or 2026-04-03. Set --locale, --input dates=dmy or --input dates=mdy (and 1 more)',
      `row 2, lines.1.amount: 45.890 could mean 45.890 or 45890. Set --locale, --input decimal=',' or --input decimal='.' (and 1 more)`,
    ])
  })

  test('is read as its locale says', async () => {
    const path = await fileOf(`${header}s;7;1;04-03-2026;x;45.890\n`)
    const amount = async (mapping: object) => bodiesOf({ kind: 'retentions', path, mapping })
    expect(await amount({ locale: 'es-CL' })).toEqual([
      '{"supplier":"s","document":7,"number":1,"date":"2026-03-04","lines":[{"name":"x","amount":45890}]}',
    ])
    expect(await amount({ locale: 'en-US' })).toEqual([
      '{"supplier":"s","document":7,"number":1,"date":"2026-04-03","lines":[{"name":"x","amount":45.890}]}',
    ])
    expect(await amount({ locale: 'es-CL', decimal: '.' })).toEqual([
      expect.stringContaining('"amount":45.890'),
    ])
    expect(await amount({ decimal: ',', dates: 'mdy' })).toEqual([
      expect.stringContaining('"date":"2026-04-03"'),
    ])
  })

  test('that is written in two ways is stopped, naming both rows', async () => {
    const path = await fileOf(`${header}s;7;1;25-03-2026;x;12,50\ns;7;2;03-25-2026;x;12.50\n`)
    expect(await problemsOf({ kind: 'retentions', path })).toEqual([
      expect.stringMatching(/^row 3, date: 03-25-2026 has the month first, but row 2 has the day first/),
      expect.stringMatching(
        /^row 3, lines.1.amount: 12.50 has a decimal point, but row 2 has a decimal comma/,
      ),
    ])
  })

  test('is stopped by scientific notation whatever its locale, also in an id', async () => {
    const path = await fileOf(`${header}7,65E+08;7;1;2026-03-04;x;1,2E+05\n`)
    expect(await problemsOf({ kind: 'retentions', path, mapping: { locale: 'es-CL' } })).toEqual([
      expect.stringMatching(/supplier: 7,65E\+08 is in scientific notation: it reads as 765000000, but/),
      expect.stringMatching(/lines.1.amount: 1,2E\+05 is in scientific notation: it reads as 120000, but/),
    ])
    await expect(bodiesOf({ kind: 'retentions', path })).rejects.toThrow('so nothing was sent')
  })

  test('loses no digit of a number on its way through', async () => {
    const path = await fileOf(`${header}s;7;900719925474099312;2026-03-04;x;12345678901234567,10\n`)
    expect(await bodiesOf({ kind: 'retentions', path })).toEqual([
      expect.stringMatching(/"number":900719925474099312,.*"amount":12345678901234567\.10/),
    ])
  })
})

test('a locale says how numbers and dates are written', () => {
  expect(conventionsOf('es-CL')).toEqual({ decimal: ',', dates: 'dmy' })
  expect(conventionsOf('es-MX')).toEqual({ decimal: '.', dates: 'dmy' })
  expect(conventionsOf('en-US')).toEqual({ decimal: '.', dates: 'mdy' })
  expect(() => conventionsOf('chile!')).toThrow('is not a known locale')
  expect(() => conventionsOf('xx')).toThrow('is not a known locale')
})
