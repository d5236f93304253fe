import { describe, expect, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { toTables } from '../../../core/tables/privacy.ts'

const { customers, subscriptions, plans, retentions } = listResources
const names = (resource: (typeof listResources)['customers']) => toTables(resource).map((table) => table.name)
const columns = (table: string) =>
  Object.values(listResources)
    .flatMap((resource) => toTables(resource))
    .find(({ name }) => name === table)!
    .columns.map(({ name }) => name)

describe('the tables of the lists', () => {
  test('are one for each list and one for each array of objects, under the names of the docs', () => {
    expect(names(customers)).toEqual(['customers', 'customer_contacts'])
    expect(names(subscriptions)).toEqual([
      'subscriptions',
      'subscription_lines',
      'subscription_addons',
      'subscription_addon_rates',
      'subscription_references',
    ])
    expect(names(plans)).toEqual(['plans', 'plan_tiers'])
    expect(names(retentions)).toEqual(['retentions', 'retention_lines'])
  })

  test('begin with the key of their rows and end with the fields without a column', () => {
    for (const table of Object.values(listResources).flatMap((resource) => toTables(resource))) {
      expect(table.columns.slice(0, table.key.length).map((column) => column.name)).toEqual(table.key)
      expect(table.columns.at(-1)).toMatchObject({ name: '_extra', kind: 'json' })
    }
    expect(columns('customer_contacts').slice(0, 3)).toEqual(['customer_id', 'position', 'id'])
    expect(columns('subscription_addon_rates').slice(0, 4)).toEqual([
      'subscription_id',
      'subscription_addon_position',
      'position',
      'billing_cycle',
    ])
  })

  test('have nested objects as columns of their own and objects of no known shape as JSON', () => {
    const columns = toTables(customers)[0]!.columns
    expect(columns).toContainEqual({ name: 'country_id', kind: 'text', source: 'customers.country.id' })
    expect(columns.find(({ name }) => name === 'state_id')?.kind).toBe('integer')
    expect(columns.find(({ name }) => name === 'metadata')?.kind).toBe('json')
    expect(columns.map(({ name }) => name)).not.toContain('country')
  })

  test('carry the id of their record in the kind that the record has it in', () => {
    const [, lines] = toTables(retentions)
    expect(lines?.columns[0]).toEqual({ name: 'retention_id', kind: 'integer', source: 'retentions.id' })
    expect(lines?.parent).toBe('retentions')
  })

  test('are plain data, so that a manifest can hold them', () => {
    const tables = toTables(subscriptions)
    expect(JSON.parse(JSON.stringify(tables))).toEqual(tables)
  })
})
