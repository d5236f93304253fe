import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Table, Kind } from '../../tables/table.ts'
import type { Destination, PartFile, Publication } from '../destination.ts'
import type { Dialect, Manifest, PublishedFile } from '../manifest.ts'
import { toPublishedTable } from '../to-manifest.ts'
import { checkTables, readParts, rowsOf } from '../parts.ts'
import { createFileDestination, type StagedFiles } from './publish.ts'
import { parse } from 'csv-parse'
import { stringify } from 'csv-stringify'
import { pipeline, Readable } from 'node:stream'
import { pipeline as finished } from 'node:stream/promises'
import { readCell } from '../../tables/cell.ts'
import { guardFormula, guardText, unguardFormula } from '../../tables/formula-guard.ts'

/** Destination for CSV files. */
export const createCsvDestination = (): Destination =>
  createFileDestination({ name: 'csv', below: '', stage: stageCsv })

const machine: Dialect = {
  delimiter: ',',
  decimal: '.',
  bom: false,
  formulaGuard: false,
  encoding: 'utf-8',
  lineEnd: '\n',
  null: 'an empty field; the empty string is ""',
}

/** The dialect that a spreadsheet in Santiago, Bogotá or Mexico opens with a double click. */
const excel: Dialect = { ...machine, delimiter: ';', decimal: ',', bom: true, formulaGuard: true }

export const dialectOf = (forExcel: boolean): Dialect => (forExcel ? excel : machine)

/** The bytes at the start of a table's file: byte order mark and header. */
export function toHeader(dialect: Dialect, columns: readonly { name: string }[]): string {
  const names = columns.map((column) => column.name).join(dialect.delimiter)
  return `${dialect.bom ? '\ufeff' : ''}${names}\n`
}

async function stageCsv(publication: Publication, folder: string): Promise<StagedFiles> {
  const { forExcel = false, signal } = publication
  const dialect = dialectOf(forExcel)
  checkTables(publication)
  const tables = []
  for (const table of publication.tables) {
    const parts = publication.parts.filter((part) => part.table === table.name)
    const file = await stageParts(folder, {
      path: `${table.name}.csv`,
      rows: rowsOf(parts),
      header: toHeader(dialect, table.columns),
      chunks: forExcel
        ? toExcel(table, readParts(parts, { signal }))
        : readParts(parts, { signal, reusesBuffer: true }),
    })
    tables.push(toPublishedTable(publication, table, { rows: file.rows, files: [file] }))
  }
  return { ...(await stageNotes(publication, folder)), tables, dialect }
}

/** Writes the files beside the tables, if any: rejected items, ids that do not exist, and the certificate of a list. */
export async function stageNotes(
  publication: Publication,
  folder: string,
): Promise<Pick<Manifest, 'rejected' | 'missing' | 'certificate'>> {
  const { rejected = [], missing, certificate, signal } = publication
  const stageNote = async (path: string, header: string, parts: readonly PartFile[]) => {
    const [rows, chunks] = [rowsOf(parts), readParts(parts, { signal, reusesBuffer: true })]
    return { rows, files: rows === 0 ? [] : [await stageParts(folder, { path, rows, header, chunks })] }
  }
  const notes = { rejected: await stageNote('rejected.jsonl', '', rejected) }
  if (certificate !== undefined) {
    const file = await stageCertificate(publication, folder)
    return { ...notes, certificate: { rows: file.rows, files: [file] } }
  }
  if (missing === undefined) return notes
  const ids = await stageNote('missing.csv', 'id\n', missing.parts)
  return { ...notes, missing: { ...ids, first: [...missing.first] } }
}

export const certificateName = 'certificate.jsonl'

export const stageCertificate = (publication: Publication, folder: string): Promise<PublishedFile> =>
  stageParts(folder, {
    path: certificateName,
    // With its first and its last line.
    rows: rowsOf(publication.certificate ?? []) + 2,
    header: '',
    chunks: certificateOf(publication),
  })

/** The bytes of a certificate. Its first line says what was read, the last one what is claimed. */
export async function* certificateOf(of: Publication): AsyncGenerator<Buffer> {
  const { resource, workspace, testMode, mode, filters, facts, certificate = [], signal } = of
  const { ordering, changedSince = null, verdict, reasons, records, windows } = facts
  const completeThrough = verdict === 'proven' ? facts.completeThrough : null
  const head = { certificate: 1, resource, workspace, testMode, mode, filters, key: ordering, changedSince }
  const end = { end: verdict, reasons, completeThrough, records, windows }
  yield Buffer.from(`${JSON.stringify(head)}\n`)
  yield* readParts(certificate, { signal })
  yield Buffer.from(`${JSON.stringify(end)}\n`)
}

/** Writes a header and chunks into a new file and fsyncs it, computing its checksum on the way. */
async function stageParts(
  folder: string,
  file: {
    path: string
    rows: number
    header: string
    chunks: AsyncIterable<Buffer>
  },
): Promise<PublishedFile> {
  const { path, rows, header, chunks } = file
  const hash = createHash('sha256')
  await using written = await open(join(folder, path), 'wx')
  let bytes = 0
  const append = async (chunk: Buffer) => {
    // Overlaps the disk write with the checksum of the same chunk.
    const writing = written.writeFile(chunk)
    hash.update(chunk)
    bytes += chunk.length
    await writing
  }
  if (header !== '') await append(Buffer.from(header))
  for await (const chunk of chunks) await append(chunk)
  await written.sync()
  return { path, rows, bytes, sha256: hash.digest('hex') }
}

/**
 * Rewrites our CSV for a spreadsheet: `;` as delimiter, a decimal comma in number columns, texts that
 * it would take for numbers or dates as texts, the formula guard in all others.
 */
export function toExcel(table: Table, chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const cells = table.columns.map(({ kind }) => toCell(kind))
  return rewrite(chunks, { from: machine, to: excel, rewriteCell: (text, at) => cells[at]!(text) })
}

/** Writes a table that `toExcel` has rewritten as our CSV again, with its header. */
export const writePlain = ({ columns }: Table, from: string, to: string): Promise<void> =>
  rewriteFile(from, to, {
    from: excel,
    to: machine,
    rewriteCell: (text, at) => (isNumber(columns[at]!.kind) ? toPoint(text) : unguardFormula(text)),
  })

/** Writes a file of our CSV with the formula guard in all cells, for people who open it in a spreadsheet. */
export const writeGuarded = (from: string, to: string): Promise<void> =>
  rewriteFile(from, to, { from: machine, to: machine, rewriteCell: guardFormula })

interface Rewriting {
  from: Dialect
  to: Dialect
  rewriteCell: (text: string, at: number) => string
}

const rewriteFile = (from: string, to: string, how: Rewriting): Promise<void> =>
  finished(rewrite(createReadStream(from), how), createWriteStream(to, { flags: 'wx' }))

function rewrite(chunks: AsyncIterable<Buffer>, { from, to, rewriteCell }: Rewriting) {
  async function* rewriteRows(rows: AsyncIterable<(string | null)[]>) {
    for await (const row of rows) yield row.map((cell, at) => (cell === null ? null : rewriteCell(cell, at)))
  }
  // The last stream fails with any earlier failure, so the callback has nothing to do.
  return pipeline(
    Readable.from(chunks),
    parse({ cast: readCell, delimiter: from.delimiter, bom: from.bom }),
    rewriteRows,
    stringify({ delimiter: to.delimiter, quoted_match: /^$/ }),
    () => {},
  )
}

const isNumber = (kind: Kind) => kind === 'integer' || kind === 'decimal'

function toCell(kind: Kind): (text: string) => string {
  if (isNumber(kind)) return toComma
  return kind === 'text' ? guardText : guardFormula
}

const toComma = (number: string) => number.replace('.', ',')

const toPoint = (number: string) => number.replace(',', '.')
