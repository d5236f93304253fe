/** Documents for the tax agency: retentions, which are a list, and credit notes and cancellations, read by their id. */
import { z } from 'zod'
import { boolean, choice, date, decimal, freeText, integer, json, list, text, timestamp } from './fields.ts'
import { equals, type ListResource } from './filters.ts'

const sums = {
  amount: decimal({ write: 'optional', nullable: true }),
  exempt: decimal({ write: 'optional', nullable: true }),
  tax: decimal({ write: 'optional', nullable: true }),
  tax_percent: decimal({ write: 'optional', nullable: true }),
  subtotal: decimal({ write: 'optional', nullable: true }),
  total: decimal({ write: 'optional', nullable: true }),
}

const discounts = {
  discount: decimal({ write: 'optional', nullable: true }),
  discount_scheme: choice(['%', '$'], { write: 'optional', nullable: true }),
  status: choice(['draft', 'finalized', 'cancelled'], { write: 'readOnly' }),
}

const notes = {
  note: text({ write: 'optional', nullable: true, maxLength: 64 }),
  internal_note: text({ write: 'optional', nullable: true, maxLength: 1024 }),
}

/** Where the document stands with the tax agency. */
const filing = {
  biller_status: text({ write: 'readOnly' }),
  tax_agency: json({ write: 'readOnly' }),
  local_file: text({ write: 'readOnly', nullable: true, note: 'address of the file' }),
  imported: boolean({ write: 'readOnly' }),
  test_mode: boolean({ write: 'readOnly' }),
}

const stamps = {
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
}

// Which fields of a line are required: not shown.
const retentionLine = z.looseObject({
  name: freeText({ write: 'optional' }),
  amount: decimal({ write: 'optional' }),
  quantity: decimal({ write: 'optional' }),
  description: freeText({ write: 'optional' }),
  exempt: boolean({ write: 'optional', default: 'false' }),
  tax: decimal({ write: 'optional' }),
  tax_percent: decimal({ write: 'optional' }),
  discount: decimal({ write: 'optional' }),
  discount_scheme: choice(['%', '$'], { write: 'optional' }),
  id: integer({ write: 'readOnly' }),
  total: decimal({ write: 'readOnly' }),
})

/** Interface section 2.7: a withholding-tax document issued against a supplier. */
export const retention = z.looseObject({
  id: integer({ write: 'readOnly' }),
  supplier: text({ write: 'required', note: 'supplier id' }),
  document: integer({ write: 'required', note: 'retention document type' }),
  number: integer({ write: 'required' }),
  date: date({ write: 'required' }),
  lines: list(retentionLine, { write: 'required' }),
  ...sums,
  ...discounts,
  ...filing,
  ...stamps,
})

export const retentions: ListResource<'retentions'> = {
  name: 'retentions',
  schema: retention,
  filters: {
    ...equals(retention, ['supplier', 'document', 'number', 'date', 'total']),
    bulk: { kind: 'uncheckable' },
  },
}

// Which fields of a line are required: not shown.
const creditNoteLine = z.looseObject({
  id: integer(),
  name: text({ write: 'optional' }),
  amount: decimal({ write: 'optional' }),
  quantity: decimal({ write: 'optional' }),
  exempt: boolean({ write: 'optional' }),
  description: text({ write: 'optional' }),
  tax: decimal({ write: 'optional' }),
  tax_percent: decimal({ write: 'optional' }),
  total: decimal({ write: 'optional' }),
  discount: decimal({ write: 'optional' }),
  discount_scheme: choice(['%', '$'], { write: 'optional' }),
  code: text({ write: 'optional' }),
  code_scheme: text({ write: 'optional' }),
  retention: decimal({ write: 'optional' }),
  retention_percent: decimal({ write: 'optional', default: '0' }),
  retention_scheme: text({
    write: 'optional',
    note: 'such as `subtotal`',
  }),
})

/** Interface section 2.8. */
export const creditNote = z.looseObject({
  id: integer({ write: 'readOnly' }),
  invoice: text({ write: 'required', note: 'id of the invoice that the credit note adjusts' }),
  date: date({ write: 'required' }),
  document: integer({
    write: 'optional',
    nullable: true,
    note: 'credit-note document type; the biller may assign one at finalize',
  }),
  number: integer({ write: 'readOnly' }),
  ...notes,
  ...sums,
  retention: decimal({ write: 'optional', nullable: true }),
  ...discounts,
  ...filing,
  lines: list(creditNoteLine, { write: 'optional' }),
  ...stamps,
})

/** Interface section 2.9: a cancellation of a finalized retention. */
export const cancellation = z.looseObject({
  id: integer({ write: 'readOnly' }),
  retention: integer({ write: 'required', note: 'id of the retention being cancelled' }),
  document: integer({ write: 'required', note: 'cancellation document type' }),
  number: integer({ write: 'required' }),
  date: date({ write: 'required' }),
  ...notes,
  ...filing,
  ...stamps,
})
