import type { RecordGenerator } from '../store.ts'
import { toDate } from './times.ts'
import { decimal, drawAmount, notes, plainNames, textId } from './values.ts'

/** Ids are integers, as in tables with a serial key. */
const FIRST_ID = 1001

export function retentionGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => FIRST_ID + index,
    own: ({ index, id, created, stamps }, chance) => {
      return {
        id,
        supplier: textId('sup', index % 300),
        document: chance.pick([7, 8, 20]),
        number: 1 + Math.floor(index / 300),
        date: toDate(created),
        total: drawAmount(chance),
        status: chance.pick(['draft', 'finalized', 'finalized', 'cancelled']),
        lines: Array.from({ length: 1 + chance.below(3) }, (_, place) => ({
          id: Number(id) * 10 + place,
          name: chance.pick(plainNames),
          amount: drawAmount(chance),
          quantity: decimal(`${1 + chance.below(5)}.000`),
          description: chance.pick(notes),
          exempt: chance.happens(0.1),
          tax_percent: decimal('10.75'),
          ...(chance.happens(0.2) ? { discount: decimal('5.00'), discount_scheme: '%' } : {}),
          total: drawAmount(chance),
        })),
        test_mode: testMode,
        ...stamps,
      }
    },
    shared: (chance) => ({
      amount: drawAmount(chance),
      exempt: chance.happens(0.7) ? null : decimal('0.00'),
      tax: drawAmount(chance),
      tax_percent: chance.pick([null, decimal('19.0')]),
      subtotal: drawAmount(chance),
      discount: null,
      discount_scheme: chance.pick([null, '%', '$']),
      biller_status: chance.pick(['pending', 'accepted', '']),
      tax_agency: chance.pick([{}, { track_id: 123456789, state: 'EPR' }, null]),
      ...(chance.happens(0.3) ? {} : { local_file: 'https://ejemplo.cl/r.pdf?x=1,2' }),
      imported: chance.happens(0.1),
      bulk: chance.pick([null, 1, 2, 3]),
    }),
  }
}
