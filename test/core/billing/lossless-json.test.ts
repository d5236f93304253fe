import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anyCharacter } from '../../any-character.ts'
import { numberText, parseLossless } from '../../../core/billing/lossless-json.ts'

/** The plain reference: slow, and obviously right. */
function reference(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && String(value) !== source ? JSON.rawJSON(source ?? '') : value,
  )
}

function outcome(parse: (text: string) => unknown, text: string): unknown {
  try {
    return plain(parse(text))
  } catch (error) {
    return error instanceof SyntaxError ? 'SyntaxError' : error
  }
}

/** Raw numbers as something that toEqual tells apart from texts and objects. */
function plain(value: unknown): unknown {
  if (JSON.isRawJSON(value)) return Symbol.for(`raw ${value.rawJSON}`)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'object' && value !== null)
    return Object.entries(value).map(([key, item]) => [key, plain(item)])
  return Object.is(value, -0) ? '-0' : value
}

const digits = fc.stringMatching(/^\d{1,20}$/)
const numberTexts = fc.oneof(
  fc.constantFrom(
    '0',
    '-0',
    '1.50',
    '0.10',
    '-0.0',
    '1e400',
    '1E5',
    '0.0000001',
    '0.000001',
    '9007199254740993',
  ),
  fc.constantFrom(
    '12345678901234567.89',
    '123456789012345',
    '-1.10e-7',
    '100000000000000000000000',
    '1500.5',
  ),
  fc
    .tuple(
      fc.constantFrom('', '-'),
      digits,
      fc.option(digits),
      fc.option(fc.integer({ min: -400, max: 400 })),
    )
    .map(([sign, whole, fraction, exponent]) => {
      const start = sign + whole.replace(/^0+(?=\d)/, '')
      return start + (fraction === null ? '' : `.${fraction}`) + (exponent === null ? '' : `e${exponent}`)
    }),
)
const hostile = [
  ':1.50',
  '":1.50,',
  '\\":1.0',
  'a":1.50}',
  '\u007f1.50',
  '\u007f',
  ',1.50,',
  '[1.50]',
  '\\',
  '"',
  '',
]
const stringTexts = fc
  .oneof(
    fc.constantFrom(...hostile),
    fc.string({ unit: anyCharacter }),
    fc.array(fc.constantFrom(...hostile)).map((parts) => parts.join('')),
  )
  .chain((text) =>
    fc.constantFrom(
      JSON.stringify(text),
      // The same text all in escapes.
      `"${Array.from(text)
        .map((unit) => (unit.length === 1 ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}` : unit))
        .join('')}"`,
    ),
  )
const spaces = fc.constantFrom('', '', '', ' ', '\n\t', '\r')
// Not drawn: a key of one character that is written as an escape. Node 24.21's own JSON.parse reads `"\\u0061":` as
// the key `\\` in some texts beyond Latin-1, so there is nothing to compare with.
const oneEscape = /^"\\(u[\da-f]{4}|.)"$/i
const keyTexts = fc.oneof(
  fc.constantFrom('"a"', '"amount"', '"__proto__"', '"é"', '"a-"', '""', '"a\\""', '"\\u0061b"', '"a "'),
  stringTexts.filter((text) => !oneEscape.test(text)),
)
const { document } = fc.letrec<{ document: string; list: string; object: string }>((tie) => ({
  document: fc
    .tuple(
      spaces,
      fc.oneof(
        { maxDepth: 4 },
        numberTexts,
        stringTexts,
        fc.constantFrom('true', 'null'),
        tie('list'),
        tie('object'),
      ),
      spaces,
    )
    .map((parts) => parts.join('')),
  list: fc.array(tie('document'), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
  object: fc
    .array(fc.tuple(spaces, keyTexts, spaces, tie('document')), { maxLength: 5 })
    .map(
      (items) =>
        `{${items.map(([before, key, after, value]) => `${before}${key}${after}:${value}`).join(',')}}`,
    ),
}))

const seed = 20_261_121
const numRuns = Number(process.env['JSON_RUNS'] ?? 4_000)

describe('parseLossless', () => {
  it('gives what a reviver over every value gives, for any JSON text', () => {
    fc.assert(
      fc.property(document, (text) => {
        expect(outcome(parseLossless, text)).toEqual(outcome(reference, text))
      }),
      { numRuns, seed },
    )
  })

  it('refuses what JSON.parse refuses, and nothing else, for text that is broken somewhere', () => {
    const broken = fc
      .tuple(
        document,
        fc.nat(),
        fc.nat({ max: 3 }),
        fc.constantFrom('', '"', ':', '1.50', ',', '\\', '}', '0', '.', 'a":1.0'),
      )
      .map(([text, at, cut, put]) => {
        const place = text.length === 0 ? 0 : at % text.length
        return text.slice(0, place) + put + text.slice(place + cut)
      })
    fc.assert(
      fc.property(broken, (text) => {
        expect(outcome(parseLossless, text)).toEqual(outcome(reference, text))
      }),
      { numRuns, seed },
    )
  })

  it('writes every number back digit for digit', () => {
    const text = '{"a":1500.50,"b":[0.10,-0,1e400],"c":12345678901234567.89,"d":9007199254740993,"e":1.0E+2}'
    expect(JSON.stringify(parseLossless(text))).toBe(text)
  })
})

describe('numberText', () => {
  it('gives the digits of a number, a raw number and a numeric text', () => {
    expect([numberText(1.5), numberText(JSON.rawJSON('1.50')), numberText('1.500')]).toEqual([
      '1.5',
      '1.50',
      '1.500',
    ])
  })
})
