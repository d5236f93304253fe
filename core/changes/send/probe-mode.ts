import type { Billing } from '../../billing/client.ts'
import { customers } from '../../billing/resources/customers.ts'
import type { ListResource } from '../../billing/resources/resource.ts'
import { retentions } from '../../billing/resources/retentions.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import { ModeNotShownError } from '../errors.ts'

/** The lists whose records say themselves whether they are live or test data. */
const telling: readonly ListResource[] = [customers, subscriptions, retentions]

/**
 * Shows, by reading, that the service acts in test mode where it is asked to: to be awaited before the first write
 * of a test run. One record of test data is enough; one of live data, or none at all, is a ModeNotShownError.
 */
export async function showTestMode({
  billing,
  signal,
}: {
  billing: Billing
  signal?: AbortSignal
}): Promise<void> {
  for (const resource of telling) {
    const { records } = await billing.list({ resource, page: 1, pageSize: 20, ...(signal && { signal }) })
    const modes = records.flatMap((record) =>
      typeof record === 'object' && record !== null && 'test_mode' in record ? [record.test_mode] : [],
    )
    if (modes.includes(false)) throw new ModeNotShownError({ seen: `live ${resource.name}` })
    if (modes.includes(true)) return
  }
  throw new ModeNotShownError({ seen: 'no record at all' })
}
