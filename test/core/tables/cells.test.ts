import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { anyCharacter } from '../../any-character.ts'
import { quoteCell, toJsonCell } from '../../../core/tables/cell.ts'

describe('a JSON cell', () => {
  test('is what quoting the JSON gives', () => {
    const value = fc.oneof(fc.jsonValue({ stringUnit: anyCharacter }), fc.string({ unit: anyCharacter }))
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
