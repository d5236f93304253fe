import * as fc from 'fast-check'
import { parse } from 'csv-parse/sync'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { anyCharacter } from '../../any-character.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { exportPath } from '../../../core/destinations/files/publish.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { toPlainJson, toPlainNumber } from '../../core/destinations/plain-value.ts'
import { textColumnOf, literal } from '../../../core/destinations/layout.ts'
import { readCell } from '../../../core/tables/cell.ts'
import type { Column, Table } from '../../../core/tables/table.ts'
import type { SeenRow } from '../../core/destinations/contract.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { askPostgres, startPostgres } from './postgres-server.ts'
import { createWorkplace, type Workplace } from '../../core/destinations/publication.ts'
import { byKey } from '../../core/destinations/warehouse-rows.ts'

const seed = 20_271
const count = 300

const digits = (most: number) =>
  fc.string({ unit: fc.integer({ min: 0, max: 9 }).map(String), minLength: 1, maxLength: most, size: 'max' })
const whole = (most: number) => digits(most).map((text) => text.replace(/^0+(?=.)/, ''))
const sign = fc.constantFrom('', '-')
const integer = fc.tuple(sign, whole(45)).map((parts) => parts.join(''))
const exponent = fc.oneof(
  fc.constant(''),
  fc
    .tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), fc.integer({ min: 0, max: 45 }))
    .map((parts) => parts.join('')),
)
const fraction = fc.oneof(
  fc.constant(''),
  digits(25).map((text) => `.${text}`),
)
const decimal = fc.tuple(sign, whole(25), fraction, exponent).map((parts) => parts.join(''))
/** Decimals that fit DuckDB's column exactly: one that does not would hide all others. */
const narrow = fc
  .tuple(sign, whole(9), digits(9), fc.integer({ min: -9, max: 9 }))
  .map(([sign, whole, behind, exponent]) => `${sign}${whole}.${behind}e${exponent}`)
const tooFine = fc
  .tuple(sign, whole(9), digits(20))
  .map(([sign, whole, behind]) => `${sign}${whole}.${behind}`)

const pad = (number: number, length = 2) => String(number).padStart(length, '0')
const timestamp = fc
  .record({
    year: fc.oneof(fc.integer({ min: 1900, max: 2100 }), fc.integer({ min: 1, max: 9999 })),
    month: fc.integer({ min: 1, max: 12 }),
    day: fc.integer({ min: 1, max: 28 }),
    at: fc.tuple(
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      fc.integer({ min: 0, max: 59 }),
    ),
    fraction: fc.oneof(
      fc.constant(''),
      digits(6).map((text) => `.${text}`),
    ),
    offset: fc.oneof(
      fc.constant('Z'),
      fc
        .tuple(fc.constantFrom('+', '-'), fc.integer({ min: 0, max: 15 }), fc.integer({ min: 0, max: 59 }))
        .map(([way, hours, minutes]) => `${way}${pad(hours)}:${pad(minutes)}`),
    ),
  })
  .map(
    ({ year, month, day, at, fraction, offset }) =>
      `${pad(year, 4)}-${pad(month)}-${pad(day)}T${at.map((one) => pad(one)).join(':')}${fraction}${offset}`,
  )

const text = fc.oneof(
  fc.string({ unit: anyCharacter }),
  fc.string({
    unit: fc.constantFrom(
      '"',
      ',',
      '\n',
      '\r',
      '\\',
      '.',
      'N',
      ' ',
      '\t',
      '\0',
      '\ufeff',
      'á',
      '😀',
      '\ud800',
      "'",
    ),
  }),
  fc.constantFrom(
    '',
    'NULL',
    'null',
    '\\N',
    '\\.',
    '\n\\.\n',
    'true',
    '1e5',
    '007',
    '\u2028',
    '\ufeffx',
    '"',
    '#x',
    "it's",
  ),
)
const json = fc.oneof(
  fc.json({ stringUnit: anyCharacter }),
  text.map((one) => JSON.stringify(one)),
  decimal,
)

/** A customer as JSON text, digit for digit. */
const customers = fc.array(
  fc.record({
    name: text,
    state: integer,
    sales: tooFine,
    balance: narrow,
    created: timestamp,
    metadata: json,
    contact: text,
  }),
  { minLength: count, maxLength: count },
)

let workplace: Workplace
beforeEach(async () => {
  workplace = await createWorkplace()
})
afterEach(() => workplace.close())

const publicationOf = () => {
  const [sample] = fc.sample(customers, { seed, numRuns: 1 })
  const records = sample!.map(
    ({ name, state, sales, balance, created, metadata, contact }, at) =>
      `{"id":"${pad(at, 6)}","name":${JSON.stringify(name)},"state":{"id":${state}},"aggregations":{"sales":${sales},"balance":"${balance}"},
      "created":"${created}","metadata":${metadata},"contacts":[{"id":${JSON.stringify(contact)},"phone":${JSON.stringify(contact)}}]}`,
  )
  return workplace.toPublication('customers', [records.slice(0, 100), records.slice(100)])
}

/** The rows of a table as the parts hold them. */
async function cellsOf({ parts }: Publication, table: Table): Promise<SeenRow[]> {
  const rows: SeenRow[] = []
  for (const part of parts.filter((part) => part.table === table.name)) {
    const text = (await readFile(part.path)).subarray(0, part.bytes).toString()
    for (const cells of parse(text, { cast: readCell }) as unknown as (string | null)[][])
      rows.push(Object.fromEntries(table.columns.map(({ name }, at) => [name, cells[at] ?? null])))
  }
  return rows
}

/** Behind a `=`: DuckDB's driver takes a byte order mark off the beginning of a text. */
const asTexts = ({ columns }: Table) =>
  columns.map((column) => `'=' || cast("${textColumnOf(column)}" as varchar) as "${column.name}"`).join(', ')
const toTexts = (rows: SeenRow[] | undefined): SeenRow[] =>
  (rows ?? []).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, text]) => [name, text === null ? null : text.slice(1)]),
    ),
  )

const isNumber = ({ kind }: Column) => kind === 'integer' || kind === 'decimal'
const comparable = ({ columns }: Table, row: SeenRow): SeenRow =>
  Object.fromEntries(
    columns.map((column) => {
      const cell = row[column.name] ?? null
      if (cell === null) return [column.name, null]
      if (column.kind === 'json') return [column.name, toPlainJson(cell)]
      return [column.name, isNumber(column) ? toPlainNumber(cell) : cell]
    }),
  )

/** A row with the numbers that stand beside their columns put back, and documents that are kept as texts unwrapped. */
function restored({ columns }: Table, row: SeenRow, cells: SeenRow): SeenRow {
  const kept = row['_extra'] ?? null
  const extra = kept?.startsWith('"') === true ? (JSON.parse(kept) as string) : kept
  const prefix = /^\{"_misfits":(\{[^}]*\})[,}]/.exec(extra ?? '')
  const misfits = JSON.parse(prefix?.[1] ?? '{}') as Record<string, string>
  const rest = prefix === null ? extra : `{${extra!.slice(prefix[0].length)}`
  const whole: SeenRow = { ...row, ...misfits, _extra: rest === '{' ? null : rest }
  return Object.fromEntries(
    columns.map(({ name, kind }) => {
      const value = whole[name] ?? null
      const isKeptAsText = kind === 'json' && value === JSON.stringify(cells[name])
      return [name, isKeptAsText ? cells[name]! : value]
    }),
  )
}

const openings = {
  duckdb: () => ({
    destination: createDuckDbDestination({ folder: workplace.folder }),
    rows: (_: Publication, table: Table) =>
      askDuckDb(
        join(workplace.folder, 'warehouse.duckdb'),
        `select ${asTexts(table)} from ${table.name} t order by ${byKey(table)}`,
      ),
  }),
  parquet: () => ({
    destination: createParquetDestination(),
    rows: (publication: Publication, table: Table) => {
      const folder = join(publication.folder, exportPath(publication, 'parquet'))
      const file = literal(join(folder, `${table.name}.parquet`))
      return askDuckDb(
        ':memory:',
        `select ${asTexts(table)} from read_parquet(${file}) t order by ${byKey(table)}`,
      )
    },
  }),
  async postgres() {
    const server = await startPostgres()
    onTestFinished(() => server.close())
    const url = await server.createDatabase()
    return {
      destination: createPostgresDestination({ url }),
      rows: (_: Publication, table: Table) =>
        askPostgres(url, `select ${asTexts(table)} from billing.${table.name} t order by ${byKey(table)}`),
    }
  },
}

test.each(Object.keys(openings) as (keyof typeof openings)[])(
  'every cell comes to %s as it is in the parts, whatever it holds',
  async (name) => {
    const { destination, rows } = await openings[name]()
    const publication = await publicationOf()
    await destination.publish(publication)
    for (const table of publication.tables) {
      const cells = await cellsOf(publication, table)
      const read = cells.map((row) => comparable(table, row))
      const there = toTexts(await rows(publication, table)).map((row, at) =>
        comparable(table, restored(table, row, cells[at] ?? {})),
      )
      expect(there.length).toBe(read.length)
      for (const [at, row] of read.entries()) expect(there[at], `seed ${seed}`).toEqual(row)
    }
  },
)
