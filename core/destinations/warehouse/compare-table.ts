import { parse } from 'csv-parse'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { readCell } from '../../tables/cell.ts'
import type { DiskSet } from '../../storage/disk-set.ts'
import type { Manifest, PublishedTable } from '../manifest/manifest.ts'
import { createColumnSums, textIn, toComparable } from './compared-columns.ts'
import type { WarehouseSession } from './session.ts'
import { quote } from '../sql.ts'

export interface Comparison {
  session: WarehouseSession
  manifest: Manifest
  table: PublishedTable
  /** The export's folder. */
  folder: string
  /** One set for all tables: this run's row keys by table, and the records last written by another run. */
  keys: DiskSet
}

export interface Compared {
  name: string
  /** Rows present as this run wrote them. */
  compared: number
  /** Rows last written by another run. */
  newer: number
  problems: string[]
}

const others = '(others)'

/** Compares a warehouse table with the file of an export. Compare the main table before its children. */
export async function compareTable(comparison: Comparison): Promise<Compared> {
  const { name } = comparison.table
  const { sums, written, newer } = await readWarehouse(comparison)
  const file = await readFile(comparison)
  const stray = written - file.compared
  const isComplete = file.missing === 0 && stray === 0
  const examples = file.examples.join('; ') + (file.missing > file.examples.length ? '; ...' : '')
  const problems = [
    ...(file.missing > 0 ? [`${name} lacks ${count(file.missing)} of the export: ${examples}.`] : []),
    ...(stray > 0 ? [`${name} has ${count(stray)} under this run that the export lacks.`] : []),
    ...(isComplete ? sums.differences(file.sums) : []).map(
      (column) => `${name}.${column} does not hold what was exported.`,
    ),
  ]
  return { name, compared: file.compared, newer, problems }
}

const count = (rows: number) => (rows === 1 ? '1 row' : `${rows} rows`)

/** Sums the rows this run wrote, and notes which rows belong to other runs. */
async function readWarehouse({ session, manifest, table, keys }: Comparison) {
  const sums = createColumnSums(table)
  let written = 0
  let newer = 0
  const query = `select ${toComparable(table, session.typeSystem)}, "_run_id" as "run of the row"
    from ${quote(session.schema)}.${quote(table.name)}`
  for await (const row of session.stream(query)) {
    const key = toKey(table, (name) => textIn(row, name))
    if (row['run of the row'] === manifest.run) {
      written++
      keys.add(table.name, key)
      sums.addRow(key, row)
    } else {
      newer++
      if (table.parent === undefined) keys.add(others, key)
    }
  }
  return { sums, written, newer }
}

/** Sums the file's rows that this run wrote to the warehouse, and counts those missing from it. */
async function readFile({ table, folder, keys }: Comparison) {
  const sums = createColumnSums(table)
  const places = new Map(table.columns.map(({ name }, at) => [name, at]))
  const examples: string[] = []
  let compared = 0
  let missing = 0
  for (const { path } of table.files) {
    const parser = createReadStream(join(folder, path)).pipe(parse({ cast: readCell, from: 2 }))
    for await (const cells of parser as AsyncIterable<(string | null)[]>) {
      const cellOf = (name: string) => cells[places.get(name)!] ?? null
      const key = toKey(table, cellOf)
      if (keys.has(table.name, key)) {
        compared++
        sums.addCells(key, cells)
        // A child of a record that another run has written since was replaced along with it.
      } else if (!keys.has(others, cellOf(table.key[0]!) ?? '')) {
        missing++
        if (examples.length < 3) examples.push(key)
      }
    }
  }
  return { sums, compared, missing, examples }
}

const toKey = ({ key }: PublishedTable, cellOf: (name: string) => string | null) => key.map(cellOf).join(',')
