import { z } from 'zod'
import { boolean, choice, date, decimal, freeText, integer, json, list, text, timestamp } from './fields.ts'
import type { ListResource } from './resource.ts'

// Which fields of a line are required: not shown.
const line = z.looseObject({
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
  lines: list(line, { write: 'required' }),
  amount: decimal({ write: 'optional', nullable: true }),
  exempt: decimal({ write: 'optional', nullable: true }),
  tax: decimal({ write: 'optional', nullable: true }),
  tax_percent: decimal({ write: 'optional', nullable: true }),
  subtotal: decimal({ write: 'optional', nullable: true }),
  total: decimal({ write: 'optional', nullable: true }),
  discount: decimal({ write: 'optional', nullable: true }),
  discount_scheme: choice(['%', '$'], { write: 'optional', nullable: true }),
  status: choice(['draft', 'finalized', 'cancelled'], { write: 'readOnly' }),
  biller_status: text({ write: 'readOnly' }),
  tax_agency: json({ write: 'readOnly' }),
  local_file: text({ write: 'readOnly', nullable: true, note: 'address of the file' }),
  imported: boolean({ write: 'readOnly' }),
  test_mode: boolean({ write: 'readOnly' }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})

export const retentions: ListResource<'retentions'> = {
  name: 'retentions',
  path: '/retentions/',
  schema: retention,
  filters: {
    supplier: { kind: 'text', field: 'supplier' },
    document: { kind: 'integer', field: 'document' },
    number: { kind: 'integer', field: 'number' },
    date: { kind: 'date', field: 'date' },
    total: { kind: 'decimal', field: 'total' },
    bulk: { kind: 'uncheckable' },
  },
  carriesTestMode: true,
}
