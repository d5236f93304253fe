/**
 * Follows the certificate of an export as scripts/check-certificate.py does, which an auditor reads: the same argument
 * (core/reading/window.ts) and the same sums, written twice. What neither can check are its premises:
 *
 * - `created`: every record has the time by which its list is ordered, and the service never changes it (`updated`: only to a
 *   later one).
 * - `slice`: one response is one slice of the list in the requested order, as it was at one moment.
 * - `lag`: a record becomes visible within the lag after its time.
 * - `date`: the Date of a response is not later than what it shows; no cache rewrites it.
 * - `status`: a list hides records by their status alone, and only by one of those that were looked at; a record that it
 *   hides keeps its status while the statuses are read; a list that shows no record heeds the filter.
 * - `count`: a list that shows no record, or records of one time alone, counts all of them.
 * - `transcript`: the certificate says what the service answered; the service signs nothing.
 */
import { parse } from 'csv-parse'
import { pipeline } from 'node:stream'
import { posix } from 'node:path'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { toExactInstant, toInstant } from '../billing/instants.ts'
import { isDocumentName } from '../billing/resources/lists.ts'
import type { Manifest, PublishedTable } from '../destinations/manifest.ts'
import { isFileDestination } from '../destinations/names.ts'
import { certificateLine, escapeId } from '../reading/certificate.ts'
import type { FileStore } from '../storage/file-store.ts'
import {
  currencyColumn,
  decimalColumns,
  type JudgedTotals,
  judgeTotals,
  type Totals,
  TotalsCounter,
} from '../tables/totals.ts'
import { createChain, DoesNotHold, instantOf, need, type Row } from './certificate-chain.ts'

/** What the first line of a certificate has, and the last one. */
const ofHead = ['certificate', 'resource', 'workspace', 'testMode', 'mode', 'filters', 'key', 'changedSince']
const ofEnd = ['end', 'reasons', 'completeThrough', 'records', 'windows']

/**
 * Checks the totals and the certificate of an export against the rows of its CSV, whose files are as the manifest says; of
 * Parquet in a folder, the totals only. Returns what does not hold, as a sentence; undefined if everything does.
 */
export async function checkCertificate(
  store: FileStore,
  path: string,
  manifest: Manifest,
): Promise<string | undefined> {
  const [file, ...more] = manifest.certificate?.files ?? []
  try {
    const rows = await readRows(store, path, manifest)
    const rejected = await countLines(store, path, manifest.rejected.files)
    // A warehouse has them in a table.
    const isKept = isFileDestination(manifest.destination)
    need(
      !isKept || rejected === manifest.rejected.rows,
      'rejected.jsonl has other records than the manifest says',
    )
    if (manifest.mode === 'byId') {
      need(isDocumentName(manifest.resource), 'a list is not read by id')
      return undefined
    }
    need(file !== undefined, 'it has no certificate')
    need(more.length === 0, 'it has more than one certificate')
    const lines = (await text(await openFile(store, posix.join(path, file.path)))).trimEnd().split('\n')
    const [head, ...middle] = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    const end = middle.pop()
    need(head?.['certificate'] === 1 && end !== undefined, 'it lacks its first or its last line')
    const { ordering: key, changedSince = null, verdict, ...same } = manifest
    const named = { ...same, certificate: 1, key, changedSince, end: verdict } as Record<string, unknown>
    for (const [line, names] of [
      [head, ofHead],
      [end, ofEnd],
    ] as const)
      for (const name of new Set([...names, ...Object.keys(line)]))
        need(
          Object.hasOwn(line, name) && isDeepStrictEqual(named[name], line[name]),
          `${name} is not that of the manifest`,
        )
    if (verdict !== 'proven') return undefined
    need(manifest.reasons.length === 0, 'it is proven, although there are reasons why it is not')
    const partial = new Set([manifest.mode === 'incremental', key === 'updated', changedSince !== null])
    need(key === 'created' || key === 'updated', 'it is in another order')
    need(partial.size === 1, 'it is of the whole list, but has only what changed since a time')
    follow(middle, manifest, rows)
    return undefined
  } catch (error) {
    if (error instanceof DoesNotHold || error instanceof SyntaxError || error instanceof TypeError)
      return `The export is not what it claims to be: ${error.message}.`
    throw error
  }
}

async function countLines(store: FileStore, path: string, files: Manifest['rejected']['files']) {
  let lines = 0
  for (const file of files)
    for await (const chunk of await openFile(store, posix.join(path, file.path)))
      for (const byte of chunk as Buffer) if (byte === newLine) lines++
  return lines
}

const newLine = 0x0a

async function openFile(store: FileStore, path: string) {
  const stream = await store.open(path)
  need(stream !== undefined, `${path} is missing`)
  return stream
}

/**
 * What `checkCertificate` cannot check: Parquet has its rows in no order and is read in folders alone, and of Excel no rows are
 * read.
 */
export function findUnchecked(store: FileStore, { destination, dialect }: Manifest): ('rows' | 'totals')[] {
  if (destination === 'csv' && dialect?.formulaGuard === false) return []
  return destination === 'parquet' && store.folder !== undefined ? ['rows'] : ['rows', 'totals']
}

/** The rows that a certificate is about, if they can be compared with it. */
async function readRows(store: FileStore, path: string, manifest: Manifest): Promise<Row[] | undefined> {
  const unchecked = findUnchecked(store, manifest)
  if (unchecked.length === 0) return await readTables(manifest, (table) => cellsOf(store, path, table))
  if (!unchecked.includes('totals')) {
    // Only now: DuckDB takes tens of megabytes.
    const { withParquet } = await import('../destinations/files/cells.ts')
    const of = { folder: store.locate(path), manifest }
    await withParquet(of, (rowsOf) => readTables(manifest, rowsOf)).catch((error: unknown) => {
      // DuckDB's messages for these may contain a value.
      const isOfFile = /^(Binder|Conversion|Invalid Input) Error/.test(
        error instanceof Error ? error.message : '',
      )
      throw isOfFile ? new DoesNotHold('DuckDB cannot read its files as the manifest has them') : error
    })
  }
  return undefined
}

/** The rows of an export's tables, which are as many as it says, and add up to its totals. */
async function readTables(
  manifest: Manifest,
  rowsOf: (table: PublishedTable) => AsyncIterable<string[]>,
): Promise<Row[]> {
  const { tables, hashed, ordering } = manifest
  const main = tables[0]!
  const isOne = main.key.length === 1 && tables.every((table) => table === main || table.parent !== undefined)
  need(isOne, 'it has not one table of records with one key')
  const placeOf = (column: string) =>
    hashed.includes(`${main.name}.${column}`) ? -1 : main.columns.findIndex(({ name }) => name === column)
  const [time, created, currency] = [placeOf(ordering), placeOf('created'), placeOf(currencyColumn)]
  const counter = new TotalsCounter(tables, { hasCurrency: currency >= 0 })
  const currencies = new Map<string, string | undefined>()
  const rows: Row[] = []
  for (const table of tables) {
    const keys = table.key.map((name) => table.columns.findIndex((column) => column.name === name))
    const decimals = decimalColumns([table]).map(
      ([name, column]) => [name, table.columns.indexOf(column)] as const,
    )
    const below = new Map<string, string[]>()
    let count = 0
    for await (const row of rowsOf(table)) {
      count++
      const [id, ...position] = keys.map((place) => row[place]!) as [string, ...string[]]
      const isPlaced = position.every((place) => /^[0-9]+$/.test(place))
      need(isPlaced, `a row of ${table.name} has no position`)
      if (table === main) {
        currencies.set(id, row[currency])
        rows.push({ id, keys: escapeId(id), at: time < 0 ? undefined : (toInstant(row[time]) ?? NaN) })
      } else below.set(id, [...(below.get(id) ?? []), position.join()])
      const cells = decimals.map(([column, place]) => ({ column, cell: row[place]! }))
      counter.add(cells, currencies.get(id), table === main ? row[created] : undefined)
    }
    need(count === table.rows, `${table.name} has ${count} rows, not ${table.rows}`)
    if (table === main) continue
    for (const row of rows) row.keys += `;${(below.get(row.id) ?? []).join(' ')}`
    const isOfRecord = [...below.keys()].every((id) => currencies.has(id))
    need(isOfRecord, `a row of ${table.name} belongs to no record`)
    const isEachOnce = [...below.values()].every((of) => new Set(of).size === of.length)
    need(isEachOnce || manifest.verdict !== 'proven', `a row of ${table.name} comes twice`)
  }
  const isOnce = currencies.size === rows.length
  checkTotals(manifest, counter.take(), { isOnce })
  need(isOnce || manifest.verdict !== 'proven', 'an id comes twice')
  return rows
}

/** @param options.isOnce no id comes twice: otherwise, nothing tells whose currency a row below has */
function checkTotals(
  { tables, totals: claimed, drift, destination }: Manifest,
  totals: Totals,
  { isOnce }: { isOnce: boolean },
): void {
  const found = judgeTotals(tables, totals, drift)
  for (const name of Object.keys({ ...claimed.columns, ...found.columns })) {
    const [claim, total] = [claimed.columns[name], found.columns[name]]
      .map((one) => (isOnce ? one : { ...one, byCurrency: {} }))
      .map((one) => (destination === 'parquet' ? withoutForm(one) : one))
    need(isDeepStrictEqual(claim, total), `the totals of ${name} are not those of the rows`)
  }
  const isDated = claimed.created !== undefined
  need(isDated === (found.created !== undefined), 'whether its records have times is not as it says')
  for (const end of ['oldest', 'newest'] as const) {
    const isSame = toExactInstant(claimed.created?.[end]) === toExactInstant(found.created?.[end])
    need(isSame, `its ${end} record is of another time`)
  }
  const [claim, months] = [claimed, found].map(({ created }) => created?.months)
  need(isDeepStrictEqual(claim, months), 'its records were created in other months')
}

/** Parquet has numbers without zeros at their ends, and does not tell a number that is unreadable from none. */
function withoutForm(total: Partial<JudgedTotals['columns'][string]> = {}) {
  const { sum = '', empty = 0, unreadable = 0, byCurrency = {} } = total
  const trim = (decimal: string) => decimal.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')
  const parts = Object.entries(byCurrency).map(([currency, part]) => [currency, trim(part)])
  return { sum: trim(sum), without: empty + unreadable, byCurrency: Object.fromEntries(parts) as object }
}

/** The rows of a table, whose columns are those of the manifest. */
async function* cellsOf(store: FileStore, path: string, table: PublishedTable): AsyncGenerator<string[]> {
  const names = table.columns.map(({ name }) => name)
  for (const file of table.files) {
    const stream = await openFile(store, posix.join(path, file.path))
    // The last stream fails with any earlier failure.
    const rows = pipeline(stream, parse({ relax_column_count: true }), () => {}) as AsyncIterable<string[]>
    let isHeader = true
    for await (const row of rows) {
      const isRight = isHeader ? isDeepStrictEqual(row, names) : row.length === names.length
      need(isRight, `${file.path} has other columns than the manifest`)
      if (!isHeader) yield row
      isHeader = false
    }
  }
}

/** @param rows undefined if they cannot be compared */
function follow(given: readonly unknown[], manifest: Manifest, rows: readonly Row[] | undefined): void {
  const { state, add } = createChain(rows, manifest.rejected.rows)
  const lines = given.map((line, index) => {
    const { data } = certificateLine.safeParse(line)
    need(data !== undefined, `line ${index + 2} has another form`)
    return data
  })
  for (const [index, line] of lines.entries())
    try {
      add(line)
    } catch (error) {
      throw error instanceof DoesNotHold ? new DoesNotHold(`line ${index + 2}: ${error.message}`) : error
    }
  const { changedSince, windows, records, completeThrough, rejected } = manifest
  const kept = manifest.tables[0]!.rows
  const least = changedSince === undefined ? -Infinity : instantOf(changedSince) - 1
  need(
    lines.every((line) => !('range' in line) || 'local' in line === (manifest.clock === 'local')),
    'the clock is not that of the manifest',
  )
  need(state.ended && state.down === least, 'the chain does not reach the end of the list')
  need(state.place === kept, 'the table has records that no window took')
  // The others were read, but are in rejected.jsonl, as those without an id are.
  need(kept <= records && records <= kept + rejected.rows, 'a record that was read is missing')
  // Over `updated`, and where each status is read, a record may come twice.
  if (manifest.ordering === 'created') {
    const first = lines.findIndex((line) => 'status' in line)
    const once = first < 0 ? lines : lines.slice(0, first)
    const left = once.reduce((sum, line) => sum + (('left' in line && line.left) || 0), 0)
    need(left <= rejected.rows, 'a record has no row, and is not in rejected.jsonl')
  }
  need(state.windows === windows, 'a window is missing')
  const [isDue, isDone] = [state.statuses.length > 0, state.looked !== undefined]
  need(isDue === isDone, 'the statuses were not sampled again after the read')
  const isClear = manifest.statusCheck === undefined ? undefined : 'clear'
  const said = manifest.hiddenFound === true ? 'hidden' : isClear
  need(said === state.looked, 'whether the list hides records is not as the manifest says')
  need(state.due.length === 0, 'a status was not read')
  const through = instantOf(completeThrough)
  need(through <= state.through, 'it is complete through a later time than the responses show')
}
