import { expect, test } from 'vitest'
import { exportNextSteps } from '../../../core/exports/next-steps.ts'
import type { ExportedItem, PublishedExport } from '../../../core/exports/report.ts'
import { createPlan } from '../../system/export/plan.ts'

const plan = {
  ...createPlan(),
  run: 'export-1',
  to: ['csv' as const, 'duckdb' as const],
  filters: { status: 'active' },
  maxPages: 3,
}

const published = (fields: Partial<PublishedExport>) =>
  ({
    resource: 'customers',
    destination: 'csv',
    verdict: 'proven',
    reasons: [],
    capped: false,
    records: 1,
    heldBack: 0,
    ...fields,
  }) as PublishedExport

const commands = (...exports: ExportedItem[]) =>
  exportNextSteps({ plan, exports }).map(({ command }) => command)

test('a capped read leads to one without the cap', () => {
  const capped = published({ verdict: 'unproven', capped: true })
  expect(exportNextSteps({ plan, exports: [capped] })).toEqual([
    {
      text: 'a read of customers that is not cut short after 3 requests can be proven',
      command: 'npx connector export customers --to csv,duckdb --filter status=active',
    },
  ])
})

test('an unproven read leads to another one, a failed destination to publish, held-back deletes to --max-deletes', () => {
  expect(commands(published({ verdict: 'unproven' }))).toEqual([
    'npx connector export customers --to csv,duckdb --filter status=active',
  ])
  const reasons = ['locked']
  const failed = { resource: 'customers', destination: 'duckdb', verdict: 'failed', reasons } as const
  expect(commands(published({}), failed)).toEqual(['npx connector run publish export-1 --to duckdb'])
  expect(commands(published({ heldBack: 12 }))).toEqual([
    'npx connector run publish export-1 --max-deletes all',
  ])
})

test('a stopped or failed read leads to the same command, and a proven export to none', () => {
  expect(
    commands(
      { resource: 'customers', destination: null, verdict: 'stopped', reasons: [] },
      { resource: 'plans', destination: null, verdict: 'failed', reasons: ['x'] },
    ),
  ).toEqual([
    'npx connector export customers plans --to csv,duckdb --filter status=active --input maxPages=3',
  ])
  expect(commands(published({}))).toEqual([])
})

test('a command leaves out what the destinations to which the parts were published again do not heed', () => {
  const exports = [published({ verdict: 'unproven' })]
  const command = (to: (typeof plan.to)[number] | 'postgres' | 'parquet') => {
    const again = { ...createPlan(), to: [to], schema: 'mine', forExcel: true }
    return exportNextSteps({ plan: again, exports })[0]?.command
  }
  expect(command('csv')).toBe('npx connector export customers --for-excel')
  expect(command('postgres')).toBe('npx connector export customers --to postgres --input schema=mine')
  expect(command('parquet')).toBe('npx connector export customers --to parquet')
})
