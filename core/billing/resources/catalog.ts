/** What is sold: plans, which are a list, and products and addons, which are only created. */
import { z } from 'zod'
import { boolean, choice, decimal, freeText, integer, list, text, timestamp } from './fields.ts'
import { equals, type ListResource } from './filters.ts'

const tier = z.looseObject({
  amount: decimal(),
  quantity_from: decimal(),
  quantity_to: decimal(),
  amount_scheme: text({ note: 'such as `flat`' }),
  unit_scheme: text({ note: 'such as `all_units`' }),
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
  usage_scheme: text({ note: 'such as `licensed`' }),
  usage_aggregation: text({ note: 'such as `last_record`' }),
  tiers_mode: text({ note: 'such as `package`' }),
  tiers: list(tier),
  unit_label: text(),
  status: choice(['active', 'archived']),
  archived: timestamp({ write: 'readOnly', nullable: true }),
  created: timestamp(),
  updated: timestamp(),
})

export const plans: ListResource<'plans'> = {
  name: 'plans',
  schema: plan,
  filters: equals(plan, ['product', 'status']),
}

/** Interface section 2.4. */
export const product = z.looseObject({
  id: text({ write: 'readOnly' }),
  name: freeText({ write: 'required', maxLength: 80 }),
  unit_label: freeText({ write: 'required', maxLength: 12 }),
  status: choice(['active', 'archived'], { write: 'optional', default: 'active' }),
  archived: timestamp({ write: 'readOnly', nullable: true }),
  plans: list(plan, { write: 'readOnly' }),
  test_mode: boolean({ write: 'readOnly' }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})

/** Interface section 2.6. */
export const addon = z.looseObject({
  id: text({ write: 'readOnly' }),
  name: freeText({ write: 'required', maxLength: 56 }),
  description: freeText({ write: 'required', maxLength: 256 }),
  currency: text({ write: 'required' }),
  amount: decimal({ write: 'required' }),
  sku: text({ write: 'optional', nullable: true, maxLength: 32 }),
  apply_scheme: choice(['one_time', 'recurring'], { write: 'optional', default: 'one_time' }),
  duration_times: integer({ write: 'optional', nullable: true }),
  unit_label: freeText({ write: 'optional', nullable: true, maxLength: 4 }),
  status: choice(['active', 'archived'], { write: 'optional', default: 'active' }),
  archived: timestamp({ write: 'readOnly', nullable: true }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})
