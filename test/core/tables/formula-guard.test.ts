import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../any-character.ts'
import { guardFormula, unguardFormula } from '../../../core/tables/formula-guard.ts'

describe('the guard against formulas', () => {
  test.each([
    '=1+1',
    '+cmd|x',
    '-2+3',
    '@SUM(A1)',
    '\t=1',
    '\r=1',
    '\n=1',
    '\n',
    '＝1+1',
    '＋cmd',
    '－2+3',
    '＠SUM(A1)',
    "'=1",
    "''=1",
    '+56 9 =1',
    '+56-2-2345-6789',
    '+1 -2',
    '+1.5(2)',
    '-',
    '=',
    '+',
    ' =1',
    '\u00A0=1',
    '\v=1',
    '\0=1',
    '\uFEFF=1',
    '\u200B@SUM(A1)',
    '\u2066\u3000=1',
    "' =1",
  ])('puts a quote before %j', (text) => expect(guardFormula(text)).toBe(`'${text}`))

  test.each([
    '-5',
    '+5',
    '-1500.50',
    '-1500,50',
    '+56 9 1234 5678',
    '+56912345678',
    '+1 (212) 555-0100',
    "'x",
    '',
    'a=1',
    ' -5',
    ' a',
    '\uFEFFa',
  ])('leaves %j alone', (text) => expect(guardFormula(text)).toBe(text))

  test('is undone exactly, whatever the text', () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.string({
        unit: fc.constantFrom(
          "'",
          '=',
          '＝',
          '＠',
          '+',
          '-',
          '@',
          '\t',
          '\r',
          '\n',
          '5',
          ' ',
          '\uFEFF',
          '\0',
          'a',
          ',',
          '.',
        ),
      }),
    )
    fc.assert(
      fc.property(text, (text) => unguardFormula(guardFormula(text)) === text),
      { seed: 20_264, numRuns: 5_000 },
    )
  })
})
