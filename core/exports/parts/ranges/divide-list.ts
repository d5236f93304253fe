import { isDocumentName } from '../../../billing/resources/lists.ts'
import { planRanges } from '../../../reading/plan-read.ts'
import { type FirstLook, toReadOptions } from '../list-source.ts'
import type { SegmentSetup } from '../read-into-parts.ts'
import { keepRangePlan } from './kept-ranges.ts'

/**
 * Divides a list into as many ranges as are read at once, before its read begins. Returns whether it is divided. A range
 * costs about 1.5 requests, so a short list is read as one; so is a read that is incremental (`updated` changes) or cut
 * short.
 */
export async function divideList(
  setup: Pick<SegmentSetup, 'deps' | 'plan' | 'resource' | 'folder' | 'billing' | 'cancelled' | 'onPage'>,
  { count = 0, newestUpdated }: FirstLook,
): Promise<boolean> {
  const { deps, plan, resource, folder } = setup
  const { parallel = 1, maxPages, since } = plan
  if (isDocumentName(resource) || maxPages !== undefined || since[resource] !== undefined) return false
  const most = Math.min(Math.floor(count / deps.recordsPerRange), parallel)
  if (most < 2) return false
  const ranges = await planRanges({
    ...toReadOptions({ ...setup, resource }),
    idSet: () => Promise.reject(new Error('nothing has been read')),
    ...(newestUpdated !== undefined && { newestUpdated }),
    count,
    most,
  })
  await keepRangePlan({ shared: deps.shared, folder, plan: ranges })
  setup.onPage({ resource, pages: ranges.root.requests.made, records: 0 })
  return true
}
