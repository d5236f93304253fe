import { connector } from '../../runs/view/shell.ts'
import { extraColumn, type Table } from '../../tables/table.ts'
import { currencyColumn } from '../../tables/totals.ts'
import type { Manifest } from '../manifest.ts'
import { isFileDestination } from '../names.ts'
import { caveatOf } from '../warehouse/deletes.ts'

// What may be said about two exports of one list, from their manifests alone.

export interface Sides<T> {
  older: T
  newer: T
}

/** Why a comparison of two exports would mean nothing, as a sentence. */
export function refuseSides({ older, newer }: Sides<Manifest>): string | undefined {
  const name = ({ run, resource }: Manifest) => `the ${resource} of ${run}`
  const modeOf = ({ testMode }: Manifest) => (testMode ? 'test' : 'live')
  const stored = [older, newer].find(({ destination }) => !isFileDestination(destination))
  if (stored !== undefined)
    return (
      `The rows of ${name(stored)} are in ${stored.destination}, and in no file. Name an export to csv or parquet:` +
      ` ${connector`run publish ${stored.run} --to csv`} makes one.`
    )
  for (const [what, a, b] of [
    ['list', older.resource, newer.resource],
    ['workspace', older.workspace, newer.workspace],
    ['mode', modeOf(older), modeOf(newer)],
  ] as const)
    if (a !== b)
      return `Only exports of one ${what} can be compared: one is of ${a}, the other of ${b}. Name two of the same ${what}.`
  const key = `${older.resource}.${older.tables[0]!.key[0]}`
  if (formOf(older, key) !== formOf(newer, key))
    return `Only exports with the same ids can be compared: ${key} is hashed in one of them only, or with another key.`
  const doubled = [older, newer].find(({ repeatedIds = [] }) => repeatedIds.length > 0)
  if (doubled !== undefined)
    return `In ${name(doubled)}, several records have one id (${doubled.repeatedIds!.slice(0, 3).join(', ')}), so nobody can tell which of them changed.`
  if (Date.parse(older.startedAt) > Date.parse(newer.startedAt))
    return `${name(older)} were read later (${older.startedAt}) than ${name(newer)} (${newer.startedAt}): name the older export first.`
  return undefined
}

/** Whether, and with which key, the values at a path are hashed. */
const formOf = ({ hashed, hashedWith = '' }: Manifest, path: string) =>
  hashed.includes(path) ? `hashed ${hashedWith}` : ''

/**
 * Why an export is not a proven read of the whole list, as the end of a sentence. Only between two of them is a record that one
 * lacks new or gone.
 */
function doubtsOf(manifest: Manifest): string[] {
  const { verdict, reasons, mode, filters, capped, changedSince } = manifest
  const only = Object.entries(filters).map(([name, value]) => `${name}=${value}`)
  const caveat = caveatOf(manifest)
  return [
    ...(verdict === 'unproven' ? [`is unproven (${reasons.join('; ')})`] : []),
    ...(mode === 'incremental' ? [`has only what changed since ${changedSince}`] : []),
    ...(mode === 'byId' ? ['has only the documents that were asked for'] : []),
    ...(only.length > 0 ? [`has only records with ${only.join(', ')}`] : []),
    ...(capped ? ['ended before the list did'] : []),
    ...(caveat === undefined ? [] : [`may lack records (${caveat})`]),
  ]
}

/**
 * Which conclusions do not hold, one sentence each.
 * @param uncovered how many of the records that are gone the proof of the newer export does not cover
 */
export function findDoubts({ older, newer }: Sides<Manifest>, uncovered: number): string[] {
  const [before, after] = [doubtsOf(older), doubtsOf(newer)]
  return [
    ...before.map((why) => `The older export ${why}: what counts as new may not be, and more may be gone.`),
    ...after.map(
      (why) => `The newer export ${why}: what counts as gone may still exist, and more may be new.`,
    ),
    ...(uncovered === 0 || after.length > 0
      ? []
      : [
          `Of what counts as gone, ${uncovered} may still exist: nothing shows that the newer export should have seen what was created after ${newer.completeThrough ?? 'its start'}.`,
        ]),
  ]
}

/** A table of both exports, with the columns that can be compared. */
export type SharedTable = Pick<Table, 'name' | 'key' | 'columns'>

/** What only one side has, or each in another form. */
export interface Apart {
  /** A table, or a column as `plans.amount`. */
  name: string
  why: 'only in the older' | 'only in the newer' | 'in another form' | 'may hold values of the others'
}

/** Divides the tables and columns of two exports into those that can be compared and those that can't. */
export function shareColumns({ older, newer }: Sides<Manifest>): { tables: SharedTable[]; apart: Apart[] } {
  const [before, after] = [formsOf(older), formsOf(newer)]
  const isShared = (name: string) => before.get(name) === after.get(name)
  const apart = [...new Set([...before.keys(), ...after.keys()])].flatMap((name): Apart[] => {
    const [table = '', column] = name.split('.')
    if (isShared(name) || (column !== undefined && before.has(table) !== after.has(table))) return []
    if (!after.has(name)) return [{ name, why: 'only in the older' }]
    if (!before.has(name)) return [{ name, why: 'only in the newer' }]
    return [{ name, why: column === extraColumn ? 'may hold values of the others' : 'in another form' }]
  })
  const tables = older.tables.filter(({ name }) => after.has(name))
  return {
    tables: tables.map(({ name, key, columns }) => ({
      name,
      key,
      columns: columns.filter((column) => !key.includes(column.name) && isShared(`${name}.${column.name}`)),
    })),
    apart,
  }
}

/** The form of each table and column, by its name: of another form, equal values may be written differently. */
function formsOf({ tables, excluded, hashed, hashedWith }: Manifest): ReadonlyMap<string, string> {
  const forms = new Map(tables.map(({ name }) => [name, '']))
  for (const { name: table, key, columns } of tables) {
    const below = tables.flatMap(({ name, parent }) => (parent === table ? name : []))
    for (const { name, kind, source } of columns) {
      // Also below a column, as in `customers.metadata.rut`; but a position has the source of its whole row.
      const isWithin = (path: string) => !key.includes(name) && `${path}.`.startsWith(`${source}.`)
      const [without, hidden] = [excluded.filter(isWithin), hashed.filter(isWithin)]
      // What has no column or table on one side may be here, and what does not fit one.
      const isExtra = name === extraColumn
      const others = isExtra ? [...columns.map((one) => `${one.name} ${one.kind}`), ...below] : []
      const form = [kind, without, hidden, hidden.length > 0 && hashedWith, others.toSorted()]
      forms.set(`${table}.${name}`, JSON.stringify(form))
    }
  }
  return forms
}

/** Whether both exports say the currency of their records. */
export const haveCurrency = ({ tables: [main] }: { tables: readonly SharedTable[] }, { hashed }: Manifest) =>
  main!.columns.some(({ name, source }) => name === currencyColumn && !hashed.includes(source))

/** The amounts of a table that can be compared. */
export const decimalsOf = ({ columns }: Pick<Table, 'columns'>) =>
  columns.filter(({ kind }) => kind === 'decimal')
