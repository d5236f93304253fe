import { truncate, writeFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { checkFile, type FileCheck } from '../../../core/imports/check.ts'
import { parseMapping, readMapping } from '../../../core/imports/mapping/mapping.ts'
import type { ImportFile } from '../../../core/imports/open-file.ts'
import { fileOf, storeInput } from './csv-file.ts'

/** A worker answers Temporal from the same event loop: nothing in a file may hold it for longer, in ms. */
const mostHeld = 200

/**
 * Checks a file, and tells for how long the event loop was held at most, in ms of this thread's own time: what else
 * runs on the machine doesn't count.
 */
async function watch(options: ImportFile): Promise<{ heldMs: number; check: FileCheck | Error }> {
  const spent = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  const ending = new AbortController()
  let heldMs = 0
  const turns = async () => {
    for (let last = spent(); !ending.signal.aborted;) {
      await nextTurn()
      const now = spent()
      heldMs = Math.max(heldMs, now - last)
      last = now
    }
  }
  const watching = turns()
  const check = await checkFile(options).catch((error: unknown) => error as Error)
  await nextTurn()
  ending.abort()
  await watching
  return { heldMs, check }
}

const header = 'supplier;document;number;date;lines.1.name;lines.1.amount'
const rows = (count: number, rowOf: (at: number) => string) =>
  `${header}\n${Array.from({ length: count }, (_, at) => `${rowOf(at)}\n`).join('')}`
const retention = (number: number, { supplier = 's', amount = '1' }) =>
  `${supplier};7;${number + 1};2026-03-25;x;${amount}`

/** A look-up file of names that are near to each other, and a name that is near to all of them. */
const lookup = (entries: number, length: number) =>
  fileOf(
    Array.from({ length: entries }, (_, at) => `${String(at).padStart(length, 'ab')};sup_${at}\n`).join(''),
    'suppliers.csv',
  )
const near = (at: number, length: number) => `${String(at).padStart(length - 1, 'ab')}x`
const misses = async (count: number, length: number, entries: number) => ({
  kind: 'retentions' as const,
  path: await fileOf(rows(count, (at) => retention(at, { supplier: near(at, length) }))),
  mapping: { lookups: { supplier: await lookup(entries, Math.min(length, 100)) } },
})

const longAmount = `1.${'0'.repeat(100_000)}1`

test('a file of 10 GB is refused with a sentence, before it is copied or read', async () => {
  const path = await fileOf(`${header}\n`)
  await truncate(path, 10 * 1024 ** 3)
  const sentence = /^file\.csv is 10\.0 GB; the limit is 1 GB\./
  await expect(storeInput({ file: path, mapping: {} })).rejects.toThrow(sentence)
  // Its first 64 KB are text: zeros are refused for what they are.
  await truncate(path, 0)
  await writeFile(path, `${header}\n`.repeat(2_000))
  await truncate(path, 10 * 1024 ** 3)
  await expect(checkFile({ kind: 'retentions', path })).rejects.toThrow(sentence)
})

const retentions = async (content: string | Uint8Array): Promise<ImportFile> => ({
  kind: 'retentions',
  path: await fileOf(content),
})

describe('no file holds the event loop', () => {
  test.each<[string, () => Promise<ImportFile>, string]>([
    ['40 misses among 1,999 entries of a look-up', () => misses(40, 12, 1_999), 'did you mean'],
    ['5,000 long misses among 20,000 entries', () => misses(5_000, 100, 20_000), 'is not in suppliers.csv'],
    ['looked-up cells of 5,000 characters', () => misses(20, 5_000, 1_999), 'is not in suppliers.csv'],
    [
      '20,000 columns',
      async () => {
        const names = Array.from({ length: 20_000 }, (_, at) => `lines.${at}.amout`).join(',')
        return retentions(`${names}\n${names}\n`)
      },
      'has 20,000 columns; the limit is 2,000',
    ],
    [
      '2,000 columns and a mapping, look-ups and --columns of that size',
      async () => {
        const names = Array.from({ length: 2_000 }, (_, at) => `Columna ${at}`)
        const fields = names.map((_, at) => `lines.${at}.amout`)
        const columns = Object.fromEntries(names.map((name, at) => [` ${name.toUpperCase()}`, fields[at]!]))
        const lookups = Object.fromEntries(fields.map((field) => [field, 'suppliers.csv']))
        const file = await retentions(`${names.join(',')}\n${names.join(',')}\n`)
        return { ...file, columns: fields, mapping: { columns, lookups } }
      },
      'which is not a field of retentions',
    ],
    [
      'amounts of 100,000 decimals',
      async () => ({
        ...(await retentions(rows(20, (at) => retention(at, { amount: longAmount })))),
        mapping: { decimal: '.' },
      }),
      'is too long: numbers have at most 100 characters',
    ],
    [
      'amounts of 100,000 decimals in JSON cells',
      () =>
        retentions(
          `supplier;document;number;date;lines\ns;7;1;2026-03-25;[{"name":"x","amount":${longAmount}}]\n`,
        ),
      'is too long: numbers have at most 100 characters',
    ],
    [
      'an e-mail address of 200,000 commas and points',
      async () => ({
        kind: 'update-contacts',
        path: await fileOf(`id;email\ncon_1;${',.'.repeat(100_000)}x\n`),
      }),
      'is not a valid email address',
    ],
    [
      'a word of 100,000 letters in an encoding that is not clear',
      async () => {
        const supplier = `Mu\x96oz ${'a'.repeat(100_000)}`
        return retentions(
          Buffer.from(
            rows(1, () => retention(1, { supplier })),
            'latin1',
          ),
        )
      },
      'is not clear: row 2 reads "Mu–oz" in windows-1252, "Muñoz" in macintosh',
    ],
    [
      'a cell of 3 MB',
      () => retentions(rows(1, () => `"${'x\n'.repeat(1_500_000)}"`)),
      'file.csv, row 2 is longer than a million characters',
    ],
  ])('with %s, which gets one sentence', async (_title, make, sentence) => {
    const { heldMs, check } = await watch(await make())
    const found =
      check instanceof Error
        ? check.message
        : check.problems
            .map(({ message, fix }) => `${message}${fix === undefined ? '' : '; did you mean'}`)
            .join('\n')
    expect(found).toContain(sentence)
    expect(heldMs).toBeLessThan(mostHeld)
  })
})

describe('the files of an import are limited in size', () => {
  test('a lookup file of more than 10 MB or 100,000 rows is refused with a sentence', async () => {
    const path = await fileOf(rows(1, () => retention(1, {})))
    const suppliers = await fileOf('', 'suppliers.csv')
    const mapping = { lookups: { supplier: suppliers } }
    const lines = Array.from({ length: 100_000 }, (_, at) => `${at};s\n`).join('')
    await writeFile(suppliers, lines)
    expect(await checkFile({ kind: 'retentions', path, mapping })).toMatchObject({ totals: { rows: 1 } })
    await writeFile(suppliers, `${lines}100000;s\n`)
    await expect(checkFile({ kind: 'retentions', path, mapping })).rejects.toThrow(
      'suppliers.csv has more than 100,000 rows, which is the limit.',
    )
    await truncate(suppliers, 20 * 1024 ** 2)
    await expect(checkFile({ kind: 'retentions', path, mapping })).rejects.toThrow(
      'suppliers.csv is 20.0 MB; the limit is 10 MB. Keep only the rows that the file looks up.',
    )
  })

  test('a mapping of more than 1 MB is refused with a sentence, before it is read', async () => {
    const path = await fileOf('{}', 'mapping.json')
    await truncate(path, 2 * 1024 ** 2)
    await expect(readMapping(path)).rejects.toThrow(/mapping\.json is 2\.0 MB; the limit is 1 MB\./)
  })
})

test('the stored text of wrong cells is bounded, however long they are', async () => {
  const rows = Array.from({ length: 40 }, (_, row) => `${row},${'x'.repeat(100_000)}`)
  const check = await checkFile({
    kind: 'addons',
    path: await fileOf(`number,amount\n${rows.join('\n')}\n`),
  })
  expect(check.problems.filter(({ rule }) => rule === 'number')).toHaveLength(40)
  expect(JSON.stringify(check).length).toBeLessThan(40_000)
})

test('the problems of a mapping are one sentence, however many there are', () => {
  const columns = Object.fromEntries(Array.from({ length: 40_000 }, (_, at) => [`c${at}`, at]))
  expect(() => parseMapping({ columns })).toThrow(/^.{100,2000}; and 39,980 more\.$/)
  const names = Array.from({ length: 40_000 }, (_, at) => [`c${at}`, at])
  expect(() => parseMapping(Object.fromEntries(names))).toThrow(/^.{100,500}\.\.\.\.$/)
})
