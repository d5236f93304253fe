import { expect, test } from 'vitest'
import {
  columnNames,
  createControlTotals,
  createReceipt,
  toReceiptTables,
} from '../../../core/imports/totals.ts'
import { importKinds } from '../../../core/imports/kinds.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'

const kind = importKinds.retentions

/** Amounts of more digits than a float has. */
const bodies = [
  { document: 7, total: '1234567890123456.10' },
  { document: 7, total: '0.05' },
  { document: 8, total: '2.5' },
  { document: 8, total: '0.25' },
].map(({ document, total }) => `{"document":${document},"total":${total}}`)

const row = (body: string, state: string, outcome: string | null = null) =>
  ({ body, state, outcome }) as unknown as LedgerRow

function fileTotals() {
  const totals = createControlTotals(kind)
  for (const body of bodies) {
    const parsed = JSON.parse(body, (key, value: unknown, { source }: { source?: string }) =>
      key === 'total' ? JSON.rawJSON(source ?? '') : value,
    ) as Record<string, unknown>
    totals.add({ body: parsed, rows: 1 })
  }
  return totals.totals()
}

test('done and undone rows add up to the file, to the last digit', () => {
  const receipt = createReceipt(kind)
  receipt.add(row(bodies[0]!, 'done', 'created'))
  receipt.add(row(bodies[1]!, 'rejected', 'refused'))
  receipt.add(row(bodies[2]!, 'parked', 'lostReply'))
  // The fourth is missing from the ledger: it is not done.
  const totals = receipt.receipt(fileTotals())
  expect(totals).toMatchObject({
    file: { changes: 4, sums: { total: '1234567890123458.90' } },
    done: { changes: 1, sums: { total: '1234567890123456.10' } },
    notDone: { changes: 3, sums: { total: '2.80' } },
  })
  expect(totals.notDone?.by?.values['8']).toEqual({ changes: 2, sums: { total: '2.75' } })
  expect(toReceiptTables(totals)[0]).toEqual({
    title: 'Control totals',
    head: ['', 'changes', 'total'],
    rows: [
      ['file (4 rows)', 4, '1234567890123458.90'],
      ['done', 1, '1234567890123456.10'],
      ['not done', 3, '2.80'],
      ['document 7: file', 2, '1234567890123456.15'],
      ['document 7: done', 1, '1234567890123456.10'],
      ['document 7: not done', 1, '0.05'],
      ['document 8: file', 2, '2.75'],
      ['document 8: done', 0, '0.00'],
      ['document 8: not done', 2, '2.75'],
    ],
  })
})

test('a file of which nothing was staged has its own totals only', () => {
  const receipt = createReceipt(kind).receipt(fileTotals())
  expect(receipt).toEqual({ file: fileTotals() })
  expect(toReceiptTables(receipt)[0]?.rows[0]).toEqual(['file (4 rows)', 4, '1234567890123458.90'])
})

test('one row is a row', () => {
  const totals = createControlTotals(kind)
  totals.add({ body: { document: 7, total: 1 }, rows: 1 })
  const { file } = createReceipt(kind).receipt(totals.totals())
  expect(JSON.stringify(toReceiptTables({ file }))).toContain('file (1 row)')
})

test('done and undone rows of those sent again add up to those rows, not to the file', () => {
  const receipt = createReceipt(kind)
  receipt.add(row(bodies[1]!, 'done', 'created'))
  receipt.add(row(bodies[2]!, 'parked', 'lostReply'))
  const totals = receipt.receipt(fileTotals(), 2)
  expect(totals).toMatchObject({
    file: { rows: 2, changes: 2, sums: { total: '2.55' } },
    done: { changes: 1, sums: { total: '0.05' } },
    notDone: { changes: 1, sums: { total: '2.50' } },
  })
  expect(
    toReceiptTables(totals)[0]
      ?.rows.slice(0, 3)
      .map((cells) => cells.slice(0, 2)),
  ).toEqual([
    ['sent again (2 rows)', 2],
    ['done', 1],
    ['not done', 1],
  ])
})

test('totals have the names of the sheet’s own columns', () => {
  const columns = columnNames([
    { column: 'Tipo', field: 'document' },
    { column: 'Monto 1', field: 'lines.1.amount' },
    { column: 'Monto 2', field: 'lines.2.amount' },
    { column: 'Total', field: 'total' },
  ])
  const totals = createControlTotals(kind)
  const lines = [{ amount: 2 }, { amount: 3 }]
  totals.add({ body: { document: 7, total: 5, lines }, rows: 1 })
  const table = toReceiptTables(createReceipt(kind).receipt(totals.totals(), 0, columns))[0]
  expect(table?.head).toEqual(['', 'changes', 'Monto 1 + Monto 2', 'Total'])
  expect(table?.rows.at(-1)?.[0]).toBe('Tipo 7')
  // A total of a column that the file does not have keeps the name of its field.
  expect(toReceiptTables(createReceipt(kind).receipt(totals.totals()))[0]?.head[2]).toBe('lines.amount')
})
