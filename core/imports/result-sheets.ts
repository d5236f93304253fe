import { stringify } from 'csv-stringify/sync'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { parseLossless } from '../billing/lossless-json.ts'
import { textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import { explain } from '../changes/view.ts'
import { guardFormula } from '../tables/formula-guard.ts'
import { outcomeLabel } from '../runs/view/counts.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { createEncoder } from './csv/encoding.ts'
import type { ImportKind } from './kinds.ts'
import { type Table, resultColumns } from './csv/table.ts'
import { type ImportFile, openFile } from './open-file.ts'
import type { Unit } from './parsed-changes.ts'

type ResultColumn = (typeof resultColumns)[number]

/** The changes in each result sheet, and the columns added to the file's own. */
const sheets = {
  results: {
    status: undefined,
    columns: ['_row', '_status', '_id', '_error', '_sent_at'],
  },
  /** Ready to be fixed and imported again, which ignores the columns that begin with `_`. */
  rejected: { status: 'rejected', columns: ['_row', '_error'] },
  /** With what was sent, when, and how to find it. */
  parked: {
    status: 'parked',
    columns: ['_row', '_status', '_id', '_error', '_sent_at', '_sent', '_look'],
  },
} as const satisfies Record<string, { status: string | undefined; columns: readonly ResultColumn[] }>
export type Sheet = keyof typeof sheets
export const sheetNames = Object.keys(sheets) as Sheet[]

export interface WriteResultsOptions extends ImportFile {
  /** The changes of the file, in row order. A row of the file without one has empty cells in results.csv. */
  results: AsyncIterable<LedgerRow> | Iterable<LedgerRow>
  /** An existing folder, which gets a file for each sheet. */
  folder: string
}

/** Rows that are encoded and written together, and the letters that end a batch sooner. */
const batchRows = 1_000
const batchLetters = 4_000_000

/**
 * Writes the rows of an imported file with their outcome, in the file's own delimiter, encoding and line ends: all
 * sheets in one pass. Cells are unchanged, except for a `'` before anything a spreadsheet would run, which an import
 * removes.
 */
export async function writeResults({ results, folder, ...file }: WriteResultsOptions): Promise<void> {
  const source = await openFile(file)
  const { kind, table } = source
  await using opened = new AsyncDisposableStack()
  const writers = []
  for (const name of sheetNames) writers.push(opened.use(await openSheet(name, { folder, table, kind })))
  for await (const { unit, result } of merge(source.units(), results))
    for (const writer of writers) if (writer.takes(result)) await writer.add(unit, result)
  for (const writer of writers) await writer.flush()
}

async function openSheet(name: Sheet, of: { folder: string; table: Table; kind: ImportKind }) {
  const { folder, table, kind } = of
  const { header } = table
  const { status, columns } = sheets[name]
  const { delimiter, bom, lineEnd, encoding } = table.dialect
  const format = { delimiter, record_delimiter: lineEnd, quoted_match: /[\r\n]/ }
  const toBytes = createEncoder(encoding)
  // If the file was a results file itself, our columns are replaced.
  const own = header.flatMap((column, index) =>
    (resultColumns as readonly string[]).includes(column.trim()) ? [] : [index],
  )
  const output = await open(join(folder, `${name}.csv`), 'wx')
  let pending: string[][] = [[...own.map((index) => header[index] ?? ''), ...columns].map(guardFormula)]
  let isFirst = true
  let letters = 0
  const flush = async () => {
    if (pending.length === 0) return
    await output.appendFile(toBytes(stringify(pending, { ...format, bom: bom && isFirst })))
    isFirst = false
    pending = []
    letters = 0
  }
  return {
    takes: (result: LedgerRow | undefined) => status === undefined || (result && placeOf(result)) === status,
    async add(unit: Unit, result: LedgerRow | undefined) {
      const added = columns.map((column) =>
        column === '_row' ? String(unit[0].row) : result === undefined ? '' : cellOf[column](result, kind),
      )
      for (const { cells } of unit) {
        const beyond = cells.slice(header.length)
        const line = [...own.map((index) => cells[index] ?? ''), ...beyond, ...added].map(guardFormula)
        pending.push(line)
        letters += line.reduce((sum, { length }) => sum + length, 0)
        if (pending.length >= batchRows || letters >= batchLetters) await flush()
      }
    },
    flush,
    [Symbol.asyncDispose]: () => output.close(),
  }
}

/** Joins two sides in row order; a unit without a result was never staged. */
async function* merge(
  units: AsyncIterable<Unit>,
  results: WriteResultsOptions['results'],
): AsyncGenerator<{ unit: Unit; result: LedgerRow | undefined }> {
  const all = (async function* () {
    yield* results
  })()
  const next = async () => (await all.next()).value ?? undefined
  let result = await next()
  for await (const unit of units) {
    const { row } = unit[0]
    while (result !== undefined && result.row < row) result = await next()
    yield { unit, result: result?.row === row ? result : undefined }
  }
  // A person who reads the results beside this sees all of them.
  while (result !== undefined) result = await next()
}

const cellOf: Readonly<
  Record<Exclude<ResultColumn, '_row'>, (result: LedgerRow, kind: ImportKind) => string>
> = {
  _status: (result) => outcomeLabel(placeOf(result)),
  _id: ({ answerId }) => answerId ?? '',
  _error: (result) => explain(result) ?? '',
  _sent_at: ({ sentAt }) => (sentAt === null ? '' : new Date(sentAt).toISOString()),
  _sent: ({ body }) => body,
  _look: ({ body }, kind) => whereToLook(kind, body),
}

/** `retention: supplier sup_1, document 7, number 12` */
function whereToLook({ one, identifiers }: ImportKind, body: string): string {
  const sent = parseLossless(body) as Record<string, unknown>
  const fields = identifiers.length > 0 ? identifiers : ['name']
  return `${one}: ${fields.map((field) => `${field} ${textOf(sent[field])}`).join(', ')}`
}
