import type { Billing } from '../../billing/client.ts'
import { customers } from '../../billing/resources/customers.ts'
import type { ListResource } from '../../billing/resources/filters.ts'
import { retentions } from '../../billing/resources/tax-documents.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import { ChangeError } from '../errors.ts'

/** The lists whose records say whether they are live or test data. */
const listsWithMode: readonly ListResource[] = [customers, subscriptions, retentions]

/**
 * Verifies by reading that the service honours test mode, before the first write of a test run. One record of test data
 * is enough.
 * @throws {ChangeError} if a record of live data comes back, or no record at all
 */
export async function showTestMode({
  billing,
  signal,
}: {
  billing: Billing
  signal?: AbortSignal
}): Promise<void> {
  for (const resource of listsWithMode) {
    const { records } = await billing.list({ resource, page: 1, pageSize: 20, ...(signal && { signal }) })
    const modes = records.flatMap((record) =>
      typeof record === 'object' && record !== null && 'test_mode' in record ? [record.test_mode] : [],
    )
    if (modes.includes(false)) throw notShown(`live ${resource.name}`)
    if (modes.includes(true)) return
  }
  throw notShown('no record at all')
}

const notShown = (seen: string) =>
  new ChangeError(
    'ModeNotShownError',
    `a read in test mode showed ${seen}, so nothing was written. Check BILLING_TEST_MODE; ` +
      `if there is no test data yet, first create a customer in the dashboard's test mode.`,
  )
