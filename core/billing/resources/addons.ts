import { z } from 'zod'
import { choice, decimal, freeText, integer, text, timestamp } from './fields.ts'

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
