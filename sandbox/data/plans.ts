import type { RecordGenerator } from '../store.ts'
import { toTimestamp } from './times.ts'
import { decimal, drawAmount, notes, textId } from './values.ts'

/** Plans have no `test_mode`: the interface documents none. */
export const planGenerator: RecordGenerator = {
  idOf: (index) => textId('plan', index),
  own: ({ index, id, updated, stamps }, chance) => {
    const archived = chance.happens(0.15)
    return {
      id,
      product: textId('prod', index % 40),
      name: chance.happens(0.1) ? `Plan "${index}", mensual` : `Plan ${index}`,
      sku: chance.happens(0.3) ? null : `SKU-${String(index).padStart(4, '0')}`,
      status: archived ? 'archived' : 'active',
      archived: archived ? toTimestamp(updated) : null,
      ...stamps,
    }
  },
  shared: (chance) => ({
    description: chance.pick(notes),
    frequency: chance.pick(['monthly', 'yearly', 'weekly']),
    currency: chance.pick(['CLP', 'CLF', 'USD']),
    amount: drawAmount(chance),
    exempt: chance.happens(0.1),
    ...(chance.happens(0.2) ? {} : { usage_scheme: 'licensed', usage_aggregation: 'last_record' }),
    tiers_mode: chance.happens(0.5) ? 'package' : null,
    tiers: Array.from({ length: chance.below(4) }, (_, tier) => ({
      amount: drawAmount(chance),
      quantity_from: decimal(`${tier * 100}.0`),
      quantity_to: tier === 2 ? null : decimal(`${tier * 100 + 99}.5`),
      amount_scheme: 'flat',
      unit_scheme: 'all_units',
    })),
    unit_label: chance.pick(['u', 'GB', 'm³', '']),
  }),
}
