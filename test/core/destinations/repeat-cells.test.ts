import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCellRepeater } from '../../../core/destinations/postgres/repeat-cells.ts'
import { parseRows, stringifyRows } from '../tables/csv.ts'

const seed = 20_301

const cell = fc.option(
  fc.oneof(
    fc.constantFrom('', '"', ',', '\n', '",\n"', '2025-12-29T20:59:11.614717-03:00'),
    fc.string({ unit: fc.constantFrom('"', ',', '\n', '\r', 'a', '.', '-', 'á', '😀'), maxLength: 20 }),
  ),
)

/** Rows of as many cells each, which cells are repeated, and after how many bytes a chunk ends. */
const given = fc.integer({ min: 1, max: 5 }).chain((columns) =>
  fc.record({
    columns: fc.constant(columns),
    // A lone NULL and an empty line are the same, and no table has but one column.
    rows: fc.array(fc.array(cell, { minLength: columns, maxLength: columns }).filter(isSeen)),
    repeated: fc.subarray(Array.from({ length: columns }, (_, at) => at)),
    lengths: fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
  }),
)

function isSeen(row: readonly (string | null)[]) {
  return row.length > 1 || row[0] !== null
}

/** Gives all chunks in one buffer, as `readParts` may. */
async function* inChunks(bytes: Buffer, lengths: readonly number[]) {
  const buffer = Buffer.alloc(Math.max(...lengths))
  for (let at = 0, chunk = 0; at < bytes.length; chunk++) {
    const length = bytes.copy(buffer, 0, at, at + lengths[chunk % lengths.length]!)
    at += length
    yield buffer.subarray(0, length)
  }
}

const toText = async (chunks: AsyncIterable<Buffer>) => {
  const copies = []
  for await (const chunk of chunks) copies.push(Buffer.from(chunk))
  return Buffer.concat(copies).toString()
}

test(`cells are repeated at the end of their rows, whatever they hold and wherever a chunk ends (seed ${seed})`, () =>
  fc.assert(
    fc.asyncProperty(given, async ({ columns, rows, repeated, lengths }) => {
      const bytes = Buffer.from(stringifyRows(rows))
      const repeater = createCellRepeater({ columns, repeated })
      const text = await toText(repeater.repeat(inChunks(bytes, lengths)))
      expect(parseRows(text)).toEqual(rows.map((row) => [...row, ...repeated.map((at) => row[at]!)]))
      expect(text).toBe(stringifyRows(rows.map((row) => [...row, ...repeated.map((at) => row[at]!)])))
      const longest = Math.max(0, ...rows.map((row) => Buffer.byteLength(stringifyRows([row])) - 1))
      expect(repeater.longestRow).toBe(longest)
    }),
    { seed, numRuns: 1_000 },
  ))

test.each([
  ['1,2\n3,456', '1,2,2\n3,456,456'],
  // Unrepeated, it would be the row 3 with its 4 twice.
  ['1,2\n3,4,4', '1,2,2\n3,4,4,4'],
  ['1,2\n3', '1,2,2\n3'],
  ['1,2\n3,', '1,2,2\n3,,'],
])('a last row without a newline is one, too (%j)', async (given, repeated) => {
  for (const length of [1, 4, 100]) {
    const repeater = createCellRepeater({ columns: 2, repeated: [1] })
    expect(await toText(repeater.repeat(inChunks(Buffer.from(given), [length])))).toBe(repeated)
    expect(repeater.longestRow).toBe(Math.max(3, given.length - 4))
  }
})

test('cells larger than a chunk are repeated, and small chunks are collected into large ones', async () => {
  const large = 'x'.repeat(3_000_000)
  const repeater = createCellRepeater({ columns: 2, repeated: [1] })
  const lengths = []
  for await (const { length } of repeater.repeat(inChunks(Buffer.from(`1,${large}\n2,y\n`), [50_000])))
    lengths.push(length)
  expect(lengths.reduce((sum, one) => sum + one)).toBe(2 * large.length + 4 + 6)
  expect(lengths.slice(0, -1).every((length) => length >= 1 << 20)).toBe(true)
})
