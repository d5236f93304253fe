import { expect, test } from 'vitest'
import { customers } from '../../../core/billing/resources/customers.ts'
import { retentions } from '../../../core/billing/resources/tax-documents.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import { type ListResource, createFilters } from '../../../core/billing/resources/filters.ts'

const broken = (resource: ListResource, asked: Record<string, string>, record: Record<string, unknown>) =>
  createFilters(resource, asked).broken(record)

test('a record that visibly does not match tells which filter was ignored', () => {
  expect(broken(subscriptions, { status: 'paused' }, { status: 'active' })).toBe('status')
  expect(broken(subscriptions, { status: 'paused' }, { status: 'paused' })).toBeUndefined()
  expect(broken(subscriptions, { status: 'paused' }, { status: null })).toBe('status')
  expect(broken(subscriptions, { document: '7', status: 'paused' }, { document: 7, status: 'active' })).toBe(
    'status',
  )
})

test('a record that does not carry the field says nothing', () => {
  expect(broken(subscriptions, { status: 'paused' }, {})).toBeUndefined()
})

test('a filter by line is honoured if any line of the record matches', () => {
  const asked = { lines: '7' }
  expect(broken(subscriptions, asked, { lines: [{ id: '6' }, { id: '7' }] })).toBeUndefined()
  expect(broken(subscriptions, asked, { lines: [{ id: '6' }, '7'] })).toBe('lines')
  expect(broken(subscriptions, asked, { lines: [] })).toBe('lines')
  expect(broken(subscriptions, asked, {})).toBeUndefined()
})

test('numbers are compared by value and to the last digit', () => {
  expect(broken(retentions, { number: '0012' }, { number: 12 })).toBeUndefined()
  expect(broken(retentions, { number: '12' }, { number: 13 })).toBe('number')
  expect(broken(retentions, { total: '10.5' }, { total: '10.50' })).toBeUndefined()
  expect(broken(retentions, { total: '10.50' }, { total: JSON.rawJSON('10.5') })).toBeUndefined()
  expect(
    broken(retentions, { total: '12345678901234567.89' }, { total: JSON.rawJSON('12345678901234567.88') }),
  ).toBe('total')
  expect(broken(retentions, { total: '-1' }, { total: 1 })).toBe('total')
  for (const same of ['+1500.5', '1.5005e3'])
    expect(broken(retentions, { total: same }, { total: JSON.rawJSON('1500.50') })).toBeUndefined()
  expect(broken(retentions, { total: '0' }, { total: '-0.00' })).toBeUndefined()
  expect(broken(retentions, { total: '1' }, { total: 'one' })).toBe('total')
})

test('times are compared as instants', () => {
  const created = '2026-01-01T10:00:00-03:00'
  expect(broken(customers, { created__gte: '2026-01-01T13:00:00Z' }, { created })).toBeUndefined()
  expect(broken(customers, { created__gte: '2026-01-01T13:00:00.000001Z' }, { created })).toBe('created__gte')
  expect(broken(customers, { created__lte: '2026-01-01T12:59:59Z' }, { created })).toBe('created__lte')
  expect(broken(customers, { created: '2026-01-01T13:00:00Z' }, { created })).toBeUndefined()
})

test('times that no number holds exactly are compared to the microsecond, too', () => {
  const record = { created: '9999-12-31T23:59:59.999998Z' }
  expect(broken(customers, { created__gte: '2026-01-01T00:00:00Z' }, record)).toBeUndefined()
  expect(broken(customers, { created__lte: '9999-12-31T23:59:59.999998Z' }, record)).toBeUndefined()
  expect(broken(customers, { created__lte: '9999-12-31T23:59:59.999997Z' }, record)).toBe('created__lte')
  expect(createFilters(customers, { created__lte: record.created }).uncheckable).toEqual([])
})

test('texts are compared by containment without case', () => {
  expect(broken(customers, { name: 'pérez' }, { name: 'Juan PÉREZ S.A.' })).toBeUndefined()
  expect(broken(customers, { name: 'pérez' }, { name: 'Juan' })).toBe('name')
})

test('a filter that no record can be held against is named', () => {
  expect(createFilters(customers, { country: 'CL', name: 'a' }).uncheckable).toEqual(['country'])
  expect(createFilters(retentions, { total: 'ten' }).uncheckable).toEqual(['total'])
})
