import { z } from 'zod'
import { boolean, choice, decimal, list, text, timestamp } from './fields.ts'
import type { ListResource } from './resource.ts'

const statuses = ['active', 'archived'] as const

const tier = z.looseObject({
  amount: decimal(),
  quantity_from: decimal(),
  quantity_to: decimal(),
  amount_scheme: text({ note: 'the value `flat` appears; the full set is not shown' }),
  unit_scheme: text({ note: 'the value `all_units` appears; the full set is not shown' }),
})

/** Interface section 2.5. */
export const plan = z.looseObject({
  id: text(),
  product: text({ note: 'product id' }),
  name: text(),
  description: text(),
  frequency: text(),
  currency: text(),
  amount: decimal(),
  sku: text(),
  exempt: boolean({ default: 'false' }),
  usage_scheme: text({ note: 'the value `licensed` appears; the full set is not shown' }),
  usage_aggregation: text({ note: 'the value `last_record` appears; the full set is not shown' }),
  tiers_mode: text({ note: 'the value `package` appears; the full set is not shown' }),
  tiers: list(tier),
  unit_label: text(),
  status: choice(statuses),
  archived: timestamp({ write: 'readOnly', nullable: true }),
  created: timestamp(),
  updated: timestamp(),
})

export const plans: ListResource<'plans'> = {
  name: 'plans',
  path: '/plans/',
  schema: plan,
  filters: {
    product: { kind: 'text', field: 'product' },
    status: { kind: 'choice', field: 'status', values: statuses },
  },
  statuses,
  carriesTestMode: false,
}
