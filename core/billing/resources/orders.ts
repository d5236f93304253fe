import { z } from 'zod'
import { text } from './fields.ts'

/** Interface section 2.10: of an order nothing is shown but the identifier in its path. */
export const order = z.looseObject({
  id: text({ write: 'readOnly' }),
})
