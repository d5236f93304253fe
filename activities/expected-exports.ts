import { listNames } from '../billing/resources/resource.ts'
import type { Expected } from './night.ts'
import type { ExportInput } from './open-export.ts'
import { placeOf } from './since.ts'

/** What an export with this input has to publish, list by list and place by place. */
export function toExpected(input: unknown): Expected[] {
  const asked = (input ?? {}) as ExportInput
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
