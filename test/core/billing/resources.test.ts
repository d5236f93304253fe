import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { addon, product } from '../../../core/billing/resources/catalog.ts'
import { cancellation, creditNote, retention } from '../../../core/billing/resources/tax-documents.ts'
import { contact } from '../../../core/billing/resources/customers.ts'
import { fieldOf, fieldsOf } from '../../../core/billing/resources/fields.ts'
import { carriesTestMode, statusesOf } from '../../../core/billing/resources/filters.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { subscription } from '../../../core/billing/resources/subscriptions.ts'

const rules = (schema: z.ZodObject) => fieldsOf(schema).map(([name, meta]) => ({ name, ...meta }))
const named = (schema: z.ZodObject, write: string) =>
  rules(schema).flatMap((field) => (field.write === write ? [field.name] : []))

describe('the schemas', () => {
  it.each([
    ['subscription', subscription, ['customer', 'document', 'date_start', 'next_billing', 'lines']],
    ['contact', contact, ['name', 'email']],
    ['product', product, ['name', 'unit_label']],
    ['addon', addon, ['name', 'description', 'currency', 'amount']],
    ['retention', retention, ['supplier', 'document', 'number', 'date', 'lines']],
    ['credit note', creditNote, ['invoice', 'date']],
    ['cancellation', cancellation, ['retention', 'document', 'number', 'date']],
  ])(
    'a %s requires what the interface requires, and never writes its id or times',
    (_name, schema, required) => {
      expect(named(schema, 'required')).toEqual(required)
      expect(named(schema, 'readOnly')).toEqual(expect.arrayContaining(['id', 'created', 'updated']))
      expect(rules(schema).filter(({ write }) => write === undefined)).toEqual([])
    },
  )

  it.each([
    [subscription, { note: 100, status_description: 512 }],
    [contact, { name: 64, phone: 12 }],
    [product, { name: 80, unit_label: 12 }],
    [addon, { name: 56, description: 256, sku: 32, unit_label: 4 }],
    [creditNote, { note: 64, internal_note: 1024 }],
    [cancellation, { note: 64, internal_note: 1024 }],
  ])('bound each text as the interface does', (schema, lengths) => {
    const bounded = rules(schema).flatMap(({ name, maxLength }) =>
      maxLength === undefined ? [] : [[name, maxLength]],
    )
    expect(Object.fromEntries(bounded)).toMatchObject(lengths)
  })

  it('take a record with nulls, unknown fields, raw numbers and decimals as texts', () => {
    const record = {
      id: 1,
      total: JSON.rawJSON('0.10'),
      tax: '0.10',
      lines: null,
      status: 'new',
      surprise: [1],
    }
    expect(retention.parse(record)).toEqual(record)
  })

  it.each(Object.values(listResources))(
    '$name: every filter is checked against a field that its records have',
    (resource) => {
      for (const check of Object.values(resource.filters)) {
        if (check.kind === 'uncheckable') continue
        const meta = fieldOf(resource.schema, check.kind === 'listItem' ? check.list : check.field)
        if (meta === undefined) throw new Error(`${resource.name} lacks a field of its filters`)
        if (check.kind === 'listItem')
          expect(meta.kind === 'list' && meta.fields.shape[check.field]).toBeTruthy()
      }
      expect(resource.schema.shape).toHaveProperty('created')
    },
  )

  it('a filter takes the values of its field, and plans do not say if they are live, as the other three do', () => {
    const { customers, subscriptions, plans, retentions } = listResources
    const values = ['active', 'paused', 'cancelled', 'finalized', 'needs_attention']
    expect(subscriptions.filters['status']).toEqual({ kind: 'choice', field: 'status', values })
    expect(retentions.filters).toMatchObject({ number: { kind: 'integer' }, total: { kind: 'decimal' } })
    const lists = [customers, subscriptions, plans, retentions]
    expect(lists.map(carriesTestMode)).toEqual([true, true, false, true])
    expect(lists.map(statusesOf)).toEqual([[], values, ['active', 'archived'], []])
  })
})
