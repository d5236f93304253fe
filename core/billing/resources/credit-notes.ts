import { z } from 'zod'
import { boolean, choice, date, decimal, integer, json, list, text, timestamp } from './fields.ts'

// Which fields of a line are required: not shown.
const line = z.looseObject({
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
    note: 'the value `subtotal` appears; the full set is not shown',
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
  note: text({ write: 'optional', nullable: true, maxLength: 64 }),
  internal_note: text({ write: 'optional', nullable: true, maxLength: 1024 }),
  amount: decimal({ write: 'optional', nullable: true }),
  exempt: decimal({ write: 'optional', nullable: true }),
  tax: decimal({ write: 'optional', nullable: true }),
  tax_percent: decimal({ write: 'optional', nullable: true }),
  subtotal: decimal({ write: 'optional', nullable: true }),
  total: decimal({ write: 'optional', nullable: true }),
  retention: decimal({ write: 'optional', nullable: true }),
  discount: decimal({ write: 'optional', nullable: true }),
  discount_scheme: choice(['%', '$'], { write: 'optional', nullable: true }),
  status: choice(['draft', 'finalized', 'cancelled'], { write: 'readOnly' }),
  biller_status: text({ write: 'readOnly' }),
  tax_agency: json({ write: 'readOnly' }),
  local_file: text({ write: 'readOnly', nullable: true, note: 'address of the file' }),
  imported: boolean({ write: 'readOnly' }),
  test_mode: boolean({ write: 'readOnly' }),
  lines: list(line, { write: 'optional' }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})
