import type { RecordGenerator } from '../store.ts'
import type { Chance } from './random.ts'
import { awkwardNames, drawAmount, notes, phones, plainNames, streets, textId } from './values.ts'

export const countries = [
  { id: 'CL', name: 'Chile', code: '+56', has_regulation: true, currencies: ['CLP', 'CLF'] },
  { id: 'CO', name: 'Colombia', code: '+57', has_regulation: true, currencies: ['COP'] },
  { id: 'MX', name: 'México', code: '+52', has_regulation: false, currencies: ['MXN', 'USD'] },
]
const states = [
  { id: 13, name: 'Región Metropolitana', country: 'CL' },
  { id: 11, name: 'Bogotá, D.C.', country: 'CO' },
  { id: 9, name: 'Ciudad de México', country: 'MX' },
]
const currencies = ['CLP', 'COP', 'MXN']

export function customerGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => textId('cus', index),
    own: ({ index, id, stamps }, chance) => {
      const awkward = chance.happens(0.08)
      const name = awkward ? chance.pick(awkwardNames) : `${chance.pick(plainNames)} ${index}`
      const rut = 50_000_000 + ((index * 7919) % 49_000_000)
      const contacts = Array.from({ length: chance.pick([0, 1, 1, 2]) }, (_, place) => ({
        id: `con_${String(id).slice(4)}_${place}`,
        name: chance.pick(plainNames),
        email: `contacto${place}.${index}@ejemplo.cl`,
        customer: id,
        orgunit: chance.happens(0.2) ? `org_${index % 50}` : null,
        phone: chance.pick(phones)?.slice(0, 12) ?? null,
        invoicing: chance.happens(0.8),
        collections: chance.happens(0.7),
        ...stamps,
      }))
      return {
        id,
        name,
        email: chance.happens(0.03) ? '' : `pagos+${index}@ejemplo.cl`,
        reference: awkward ? '' : `C-${String(index).padStart(7, '0')}`,
        tax_id: chance.happens(0.05) ? null : `${rut}-${chance.pick(['K', '0', '3', '7'])}`,
        contacts,
        test_mode: testMode,
        ...stamps,
      }
    },
    shared: sharedFields,
  }
}

function sharedFields(chance: Chance) {
  const country = chance.below(3)
  return {
    address: chance.pick(streets),
    country: chance.happens(0.1) ? null : countries[country],
    // Some records omit a key, others send null: both mean "not known".
    ...(chance.happens(0.15) ? {} : { state: chance.happens(0.2) ? null : states[country] }),
    currency: currencies[country],
    phone: chance.pick(phones),
    ...(chance.happens(0.2) ? {} : { website: chance.pick(['https://ejemplo.cl/?a=1&b="2"', '', null]) }),
    zip_code: chance.pick(['0075', '7500000', '110221', '', null]),
    manager: chance.pick(notes),
    tax_settings: chance.pick([{}, null, { regime: 'general', rates: [19, 0.1], exempt: false }]),
    metadata: chance.pick([
      {},
      { crm: { id: '00Q', tags: ['vip', 'a,b', '"x"'] }, since: 2019 },
      { note: 'uno\ndos', empty: '', none: null, score: drawAmount(chance) },
    ]),
    send_invoices: chance.happens(0.9),
    send_collections: chance.happens(0.7),
    send_vouchers: chance.happens(0.3),
    status: chance.happens(0.9) ? 'active' : 'inactive',
    sources: Array.from({ length: chance.below(3) }, () => textId('src', chance.below(5000))),
    aggregations: {
      sales: drawAmount(chance),
      sales_current_period: drawAmount(chance),
      balance: drawAmount(chance),
    },
    // Fields the interface does not document.
    segment: chance.pick(['pyme', 'corporativo', null]),
    ...(chance.happens(0.3) ? { loyalty: { tier: chance.below(4), points: drawAmount(chance) } } : {}),
  }
}
