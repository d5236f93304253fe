import { z } from 'zod'
import type { Body } from '../billing/client.ts'
import { addon, product } from '../billing/resources/catalog.ts'
import { contact } from '../billing/resources/customers.ts'
import { retention } from '../billing/resources/tax-documents.ts'
import { subscription } from '../billing/resources/subscriptions.ts'
import type { ChangeKind } from '../changes/change-kind.ts'
import { changeKinds } from '../changes/kinds.ts'
import { compareDecimals, textOf } from '../changes/compare-fields.ts'
import { fieldsOf, text } from '../billing/resources/fields.ts'
import type { Fault } from './problems.ts'

export const importKindNames = [
  'retentions',
  'addons',
  'products',
  'update-contacts',
  'update-subscriptions',
  'delete-orders',
] as const
export type ImportKindName = (typeof importKindNames)[number]

/** Of an order, the interface shows only the identifier in its path (section 2.10). */
const order = z.looseObject({ id: text({ write: 'readOnly' }) })

/** What files of a kind contain, beyond the schema of its records. */
export interface ImportKind {
  name: ImportKindName
  does: 'create' | 'update' | 'delete'
  /** The singular noun, for sentences; the plural ends in s. */
  one: string
  change: ChangeKind
  schema: z.ZodObject
  /** The fields that identify its records; surrounding whitespace is ignored. */
  identifiers: readonly string[]
  /** A list whose items may come in consecutive rows that repeat the identifiers. */
  list?: string
  /**
   * The service lists these records: rows are looked for in the list before they are sent and compared with it after.
   */
  listed?: true
  /** Control totals are kept for each value of this field. */
  totalsBy?: string
  /** Columns of its export that are not its fields. */
  foreign?: readonly string[]
  rules?: readonly ((body: Body) => BodyFault | undefined)[]
  /** The example row of a template: numbers with a point, dates with the year first. */
  example: Readonly<Record<string, string>>
}

/** A problem of a body as a whole, and the field that would have to change. */
interface BodyFault extends Fault {
  field: string
}

/**
 * A retention is a tax document, identified by its number both for the tax office and when it is looked up
 * after a lost reply. 0 and less mean "no number yet".
 */
function numberBelowOne(body: Body): BodyFault | undefined {
  const number = textOf(body['number'])
  if (number === '' || compareDecimals(number, '1') >= 0) return undefined
  return { field: 'number', rule: 'min', message: 'is not a document number, which is 1 or more' }
}

/** The interface, section 2.1: `default_source` is required when `collection_scheme` is `charge_payment`. */
function chargesWithoutSource(body: Body): BodyFault | undefined {
  if (body['collection_scheme'] !== 'charge_payment' || textOf(body['default_source']) !== '')
    return undefined
  return {
    field: 'default_source',
    rule: 'required',
    message: 'is required in a row whose collection_scheme is charge_payment',
  }
}

export const importKinds: Readonly<Record<ImportKindName, ImportKind>> = {
  retentions: {
    name: 'retentions',
    does: 'create',
    one: 'retention',
    change: changeKinds['create-retention'],
    schema: retention,
    identifiers: ['supplier', 'document', 'number'],
    list: 'lines',
    listed: true,
    totalsBy: 'document',
    rules: [numberBelowOne],
    example: {
      supplier: 'sup_0001',
      document: '7',
      number: '1234',
      date: '2026-03-25',
      total: '45890.50',
      'lines.1.name': 'Honorarios',
      'lines.1.amount': '45890.50',
      'lines.1.quantity': '1',
      'lines.1.tax': '6654.12',
      tax_percent: '14.5',
    },
  },
  addons: {
    name: 'addons',
    does: 'create',
    one: 'addon',
    change: changeKinds['create-addon'],
    schema: addon,
    identifiers: [],
    totalsBy: 'currency',
    example: {
      name: 'Soporte',
      description: 'Soporte mensual',
      currency: 'CLP',
      amount: '9990.50',
      sku: 'SOP-01',
      apply_scheme: 'recurring',
      duration_times: '12',
      unit_label: 'mes',
      status: 'active',
    },
  },
  products: {
    name: 'products',
    does: 'create',
    one: 'product',
    change: changeKinds['create-product'],
    schema: product,
    identifiers: [],
    example: { name: 'Plataforma', unit_label: 'usuario', status: 'active' },
  },
  'update-contacts': {
    name: 'update-contacts',
    does: 'update',
    one: 'contact',
    change: changeKinds['update-contact'],
    schema: contact,
    identifiers: ['id'],
    foreign: ['customer_id', 'position'],
    example: {
      id: 'con_0001',
      name: 'María Soto',
      email: 'maria@example.com',
      phone: '+56912345678',
      invoicing: 'true',
      collections: 'false',
    },
  },
  'update-subscriptions': {
    name: 'update-subscriptions',
    does: 'update',
    one: 'subscription',
    change: changeKinds['update-subscription'],
    schema: subscription,
    identifiers: ['id'],
    rules: [chargesWithoutSource],
    example: {
      id: 'sub_0001',
      next_billing: '2026-03-25',
      expiration_days: '10',
      custom_change: '950.50',
      note: 'Renovación anual',
    },
  },
  'delete-orders': {
    name: 'delete-orders',
    does: 'delete',
    one: 'order',
    change: changeKinds['delete-order'],
    schema: order,
    identifiers: ['id'],
    example: { id: 'ord_0001' },
  },
}

/** Fields that every body of a kind must have. */
export const requiredFields = ({ does, schema }: ImportKind): readonly string[] =>
  does === 'create'
    ? fieldsOf(schema).flatMap(([key, { write }]) => (write === 'required' ? [key] : []))
    : ['id']
