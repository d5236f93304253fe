import type { RecordGenerator } from '../store.ts'
import { Chance } from './random.ts'
import { toDate, toTimestamp } from './times.ts'
import { decimal, drawAmount, notes, textId } from './values.ts'

interface DocumentOptions {
  seed: number
  testMode: boolean
}

const stamped = (created: number, updated: number) => ({
  date: toDate(created),
  created: toTimestamp(created),
  updated: toTimestamp(updated),
})

export function creditNoteGenerator({ seed, testMode }: DocumentOptions): RecordGenerator {
  return {
    idOf: (index) => 501 + index,
    own: ({ index, id, created, updated }) => ({
      id,
      invoice: textId('inv', index * 3),
      number: 7000 + index,
      ...stamped(created, updated),
    }),
    shared: (variant) => {
      const chance = new Chance(seed, variant)
      return {
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
            id: variant,
            name: 'Servicio',
            amount: drawAmount(chance),
            quantity: decimal('1.0'),
            code: '001',
          },
        ],
      }
    },
  }
}

export function cancellationGenerator({ seed, testMode }: DocumentOptions): RecordGenerator {
  return {
    idOf: (index) => 301 + index,
    own: ({ index, id, created, updated }) => ({
      id,
      retention: 1001 + index * 2,
      number: 90 + index,
      ...stamped(created, updated),
    }),
    shared: (variant) => {
      const chance = new Chance(seed, variant)
      return {
        document: 9,
        note: chance.pick(notes),
        internal_note: chance.pick(notes),
        biller_status: 'pending',
        tax_agency: {},
        local_file: null,
        imported: false,
        test_mode: testMode,
      }
    },
  }
}

/**
 * Generates records without fields of their own: the interface shows only an order's id in its path, and
 * products and addons only as sent.
 */
export function bareGenerator(prefix: string): RecordGenerator {
  return {
    idOf: (index) => textId(prefix, index),
    own: ({ id, created, updated }) => ({
      id,
      created: toTimestamp(created),
      updated: toTimestamp(updated),
    }),
    shared: () => ({ object: prefix }),
  }
}
