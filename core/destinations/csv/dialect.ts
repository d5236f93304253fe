import type { Dialect } from '../manifest/manifest.ts'

const machine: Dialect = {
  delimiter: ',',
  decimal: '.',
  bom: false,
  formulaGuard: false,
  encoding: 'utf-8',
  lineEnd: '\n',
  null: 'an empty field; the empty string is ""',
}

/** What a spreadsheet in Santiago, Bogotá or Mexico opens with a double click. */
const excel: Dialect = { ...machine, delimiter: ';', decimal: ',', bom: true, formulaGuard: true }

export const dialectOf = (forExcel: boolean): Dialect => (forExcel ? excel : machine)

/** The bytes at the start of a table's file: byte order mark and header. */
export function toHeader(dialect: Dialect, columns: readonly { name: string }[]): string {
  const names = columns.map((column) => column.name).join(dialect.delimiter)
  return `${dialect.bom ? '\ufeff' : ''}${names}\n`
}
