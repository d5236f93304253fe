import { z } from 'zod'
import { boolean, freeText, text, timestamp } from './fields.ts'

/** Interface section 2.3. */
export const contact = z.looseObject({
  id: text({ write: 'readOnly' }),
  name: freeText({ write: 'required', maxLength: 64 }),
  email: text({ write: 'required', format: 'email' }),
  customer: text({ write: 'optional', nullable: true, note: 'customer the contact belongs to' }),
  orgunit: text({
    write: 'optional',
    nullable: true,
    note: 'organisation unit, a sub-grouping inside a customer',
  }),
  phone: text({ write: 'optional', nullable: true, maxLength: 12 }),
  invoicing: boolean({
    write: 'optional',
    default: 'true',
    note: 'whether the contact receives invoice emails',
  }),
  collections: boolean({
    write: 'optional',
    default: 'true',
    note: 'whether the contact receives collection reminders',
  }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})
