import { listNames } from '../billing/resources/lists.ts'
import type { Expected } from './slots.ts'
import { exportInput } from '../exports/input.ts'
import { placeOf } from '../exports/watermark.ts'

/**
 * The lists that an export with this input must publish, by destination; undefined if the input is not valid, which
 * happens when a schedule is changed in the Temporal UI.
 */
export function toExpected(input: unknown): Expected[] | undefined {
  const parsed = exportInput.safeParse(input ?? {})
  if (!parsed.success) return undefined
  const asked = parsed.data
  const { resources = [...listNames], to = ['csv'], mode = 'full', filters = {} } = asked
  const { exclude: excluded = [], hash: hashed = [], forExcel = false } = asked
  return resources.flatMap((resource) =>
    to.map((destination) => {
      const place = placeOf(asked, destination)
      const as = { excluded, hashed, forExcel: forExcel && destination === 'csv' }
      return { resource, destination, mode, filters, place, ...as }
    }),
  )
}
