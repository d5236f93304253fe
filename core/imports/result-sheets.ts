import { stringify } from 'csv-stringify'
import { createWriteStream } from 'node:fs'
import { rename } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { parseLossless } from '../billing/lossless-json.ts'
import { textOf } from '../changes/compare-fields.ts'
import { guardFormula } from '../tables/formula-guard.ts'
import { outcomeLabel } from '../runs/view/counts.ts'
import { createEncoder, type Encoding } from './csv/encoding.ts'
import type { Unit } from './group-rows.ts'
import { type ImportKind, importKinds } from './kinds.ts'
import { resultColumns } from './csv/table.ts'
import { type ImportFile, openUnits } from './open-file.ts'

/** The outcome of one change of a file. Times are milliseconds since 1970. */
export interface RowResult {
  /** The first row of the change, as yielded by `stageFile`. */
  row: number
  status: string
  id: string | null
  error: string | null
  sentAt: number | null
  /** The body that was sent, as JSON; for parked changes. */
  body: string
}

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

export interface WriteResultsOptions extends ImportFile {
  sheet: Sheet
  /** In row order. A row of the file without a result has empty cells in results.csv. */
  results: AsyncIterable<RowResult> | Iterable<RowResult>
  to: string
}

/**
 * Writes the rows of an imported file with their outcome, in the file's own delimiter, encoding and line
 * ends. Cells are unchanged, except for a `'` before anything a spreadsheet would run, which an import
 * removes. The file appears under its name once complete. Returns the number of rows.
 */
export async function writeResults({ sheet, results, to, ...file }: WriteResultsOptions): Promise<number> {
  const {
    table: { dialect, header },
    units,
  } = await openUnits(file)
  const { status, columns } = sheets[sheet]
  // If the file was a results file itself, our columns are replaced.
  const own = header.flatMap((column, index) =>
    (resultColumns as readonly string[]).includes(column.trim()) ? [] : [index],
  )
  let rows = 0
  async function* lines() {
    yield [...own.map((index) => header[index] ?? ''), ...columns].map(guardFormula)
    for await (const { unit, result } of merge({ units, results })) {
      if (status !== undefined && result?.status !== status) continue
      const extra = toCells({ kind: importKinds[file.kind], columns, result })
      for (const { row, cells } of unit) {
        rows += 1
        const beyond = cells.slice(header.length)
        const added = extra.map((cell, index) => (columns[index] === '_row' ? String(row) : cell))
        yield [...own.map((index) => cells[index] ?? ''), ...beyond, ...added].map(guardFormula)
      }
    }
  }
  const { delimiter, bom, lineEnd, encoding } = dialect
  await pipeline(
    lines,
    stringify({ delimiter, bom, record_delimiter: lineEnd, quoted_match: /[\r\n]/ }),
    (chunks: AsyncIterable<Buffer>) => encode({ chunks, encoding }),
    createWriteStream(`${to}.partial`),
  )
  await rename(`${to}.partial`, to)
  return rows
}

async function* encode({ chunks, encoding }: { chunks: AsyncIterable<Buffer>; encoding: Encoding }) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const toBytes = createEncoder(encoding)
  for await (const chunk of chunks) yield toBytes(decoder.decode(chunk, { stream: true }))
}

/** Joins two sides in row order; a unit without a result was never staged. */
async function* merge({
  units,
  results,
}: {
  units: AsyncIterable<Unit>
  results: AsyncIterable<RowResult> | Iterable<RowResult>
}): AsyncGenerator<{ unit: Unit; result: RowResult | undefined }> {
  const next = createNext(results)
  let result = await next()
  for await (const unit of units) {
    const { row } = unit[0]
    while (result !== undefined && result.row < row) result = await next()
    yield { unit, result: result?.row === row ? result : undefined }
  }
}

function createNext<T>(items: AsyncIterable<T> | Iterable<T>): () => Promise<T | undefined> {
  const all = (async function* () {
    yield* items
  })()
  return async () => {
    const { value, done } = await all.next()
    return done === true ? undefined : value
  }
}

function toCells({
  kind,
  columns,
  result,
}: {
  kind: ImportKind
  columns: readonly ResultColumn[]
  result: RowResult | undefined
}): string[] {
  if (result === undefined) return columns.map(() => '')
  return columns.map((column) => cellOf[column](result, kind))
}

const cellOf: Readonly<Record<ResultColumn, (result: RowResult, kind: ImportKind) => string>> = {
  _row: ({ row }) => String(row),
  _status: ({ status }) => outcomeLabel(status),
  _id: ({ id }) => id ?? '',
  _error: ({ error }) => error ?? '',
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
