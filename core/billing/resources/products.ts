import { z } from 'zod'
import { boolean, choice, freeText, list, text, timestamp } from './fields.ts'
import { plan } from './plans.ts'

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
