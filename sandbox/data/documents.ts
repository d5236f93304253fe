import type { RecordGenerator } from '../store.ts'
import { toDate } from './times.ts'
import { decimal, drawAmount, notes, textId } from './values.ts'

export function creditNoteGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => 501 + index,
    own: ({ index, id, created, stamps }) => ({
      id,
      invoice: textId('inv', index * 3),
      number: 7000 + index,
      date: toDate(created),
      ...stamps,
    }),
    shared: (chance) => ({
      document: chance.pick([null, 61]),
      note: chance.pick(notes),
      internal_note: chance.pick(notes),
      total: drawAmount(chance),
      retention: decimal('0.00'),
      status: chance.pick(['draft', 'finalized', 'cancelled']),
      biller_status: 'accepted',
      tax_agency: { state: 'EPR' },
      local_file: null,
      imported: false,
      test_mode: testMode,
      lines: [
        {
          id: chance.below(1000),
          name: 'Servicio',
          amount: drawAmount(chance),
          quantity: decimal('1.0'),
          code: '001',
        },
      ],
    }),
  }
}

export function cancellationGenerator(testMode: boolean): RecordGenerator {
  return {
    idOf: (index) => 301 + index,
    own: ({ index, id, created, stamps }) => ({
      id,
      retention: 1001 + index * 2,
      number: 90 + index,
      date: toDate(created),
      ...stamps,
    }),
    shared: (chance) => ({
      document: 9,
      note: chance.pick(notes),
      internal_note: chance.pick(notes),
      biller_status: 'pending',
      tax_agency: {},
      local_file: null,
      imported: false,
      test_mode: testMode,
    }),
  }
}

/**
 * Generates records without fields of their own: the interface shows only an order's id in its path, and
 * products and addons only as sent.
 */
export function bareGenerator(prefix: string): RecordGenerator {
  return {
    idOf: (index) => textId(prefix, index),
    own: ({ id, stamps }) => ({ id, ...stamps }),
    shared: () => ({ object: prefix }),
  }
}
