import { z } from 'zod'
import { boolean, date, integer, json, text, timestamp } from './fields.ts'

/** Interface section 2.9: a cancellation of a finalized retention. */
export const cancellation = z.looseObject({
  id: integer({ write: 'readOnly' }),
  retention: integer({ write: 'required', note: 'id of the retention being cancelled' }),
  document: integer({ write: 'required', note: 'cancellation document type' }),
  number: integer({ write: 'required' }),
  date: date({ write: 'required' }),
  note: text({ write: 'optional', nullable: true, maxLength: 64 }),
  internal_note: text({ write: 'optional', nullable: true, maxLength: 1024 }),
  biller_status: text({ write: 'readOnly' }),
  tax_agency: json({ write: 'readOnly' }),
  local_file: text({ write: 'readOnly', nullable: true, note: 'address of the file' }),
  imported: boolean({ write: 'readOnly' }),
  test_mode: boolean({ write: 'readOnly' }),
  created: timestamp({ write: 'readOnly' }),
  updated: timestamp({ write: 'readOnly' }),
})
