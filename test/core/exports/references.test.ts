import { expect, test } from 'vitest'
import type { Billing } from '../../../core/billing/client.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import { checkReferences } from '../../../core/exports/references.ts'
import type { SharedFolder } from '../../../core/storage/cached.ts'

const plan = {
  run: 'run',
  resources: ['subscriptions', 'customers', 'plans'],
  since: {},
  filters: {},
} as unknown as ExportPlan

const loadsNothing = new Proxy({} as SharedFolder, {
  get: (_, name) => () => Promise.reject(new Error(`${String(name)} was called`)),
})

const both = { subscriptions: 'a', customers: 'b', plans: 'c' }

test.each([
  ['incremental', { since: { customers: 1, plans: 1 } }, both],
  ['the lists are filtered', { filters: { status: 'active' } }, both],
  ['the reads were cut short', { maxPages: 1 }, both],
  ['customers were not read', { resources: ['subscriptions', 'customers'] }, { subscriptions: 'a' }],
] as const)('no part is loaded for references that are not checked: %s', async (checked, of, checkpoints) => {
  const found = await checkReferences({
    deps: { dataDir: '/', shared: loadsNothing },
    plan: { ...plan, ...(of as Partial<ExportPlan>) },
    resource: 'subscriptions',
    checkpoints,
    billing: {} as Billing,
    signal: new AbortController().signal,
  })
  expect(found.length).toBeGreaterThan(0)
  for (const one of found)
    expect(one).toMatchObject({ checked, complete: false, dangling: { ids: 0, first: [] } })
})
