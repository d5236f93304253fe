import type { Billing } from '../../core/billing/client.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import type { ListResource } from '../../core/billing/resources/filters.ts'
import { isInOrder, isSortedByUpdated } from '../../core/reading/order.ts'
import { toUnmovedSentence } from '../../core/reading/outcome.ts'
import { formatDuration } from '../../core/runs/view/format.ts'
import { RefusedError } from '../terminal/failures.ts'
import { type Finding, fine, runCheck, wrong } from './places.ts'

/** Three tries are enough, because a person is waiting. */
const tries = 3

/** Checks that the service accepts the token and the workspace, and what a read of each list can prove. */
export async function checkService(options: { billing: Billing; testMode: boolean }): Promise<Finding[]> {
  const [reached, ...clock] = await runCheck('service', async () => {
    const asked = Date.now()
    const { servedAt } = await options.billing.list({
      resource: listResources.plans,
      page: 1,
      pageSize: 1,
      tries,
    })
    return [fine('service', 'It accepts this token and workspace.'), ...compareClocks({ asked, servedAt })]
  })
  if (reached?.status !== 'ok') return reached === undefined ? [] : [reached]
  const lists = await Promise.all(
    Object.values(listResources).map((resource) =>
      runCheck(resource.name, () => checkList({ ...options, resource })),
    ),
  )
  return [reached, ...clock, ...lists.flat()]
}

/** The tolerated difference in ms: NTP keeps clocks within milliseconds, and the Date header has whole seconds. */
const mostSkewMs = 60_000

/** No finding if the clocks agree or the service sends no Date. */
function compareClocks({ asked, servedAt }: { asked: number; servedAt: number | undefined }): Finding[] {
  if (servedAt === undefined) return []
  const answered = Date.now()
  const ahead = servedAt < asked ? asked - servedAt : Math.min(0, answered - servedAt)
  if (Math.abs(ahead) <= mostSkewMs) return []
  const off = `${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'}`
  return [
    wrong(
      'clock',
      `This machine's clock is ${off} the service's. Enable NTP (timedatectl set-ntp true): schedules, ages and timeouts depend on it.`,
    ),
  ]
}

async function checkList(options: {
  billing: Billing
  testMode: boolean
  resource: ListResource
}): Promise<string> {
  const { billing, testMode, resource } = options
  const ask = async (ordering: string) =>
    (await billing.list({ resource, page: 1, pageSize: 100, ordering, tries })).records as Record<
      string,
      unknown
    >[]
  const [up, down] = [await ask('created'), await ask('-created')]
  const foreign = up.filter(
    (record) => typeof record['test_mode'] === 'boolean' && record['test_mode'] !== testMode,
  )
  if (foreign.length > 0)
    throw new RefusedError(
      `The service ignores the test-mode header: it returned ${foreign.length} records of the other mode.`,
    )
  if (!isInOrder(up, 'created'))
    throw new RefusedError('The service does not sort by `created`: no read of this list can be proven.')
  const descending = isInOrder(down.toReversed(), 'created')
  const incremental = await isSortedByUpdated((request) => billing.list({ resource, ...request, tries }))
  const how = descending
    ? ''
    : ' (the service does not sort by `-created`: reads find the newest records from the end)'
  const unmoved = resource.unmoved === undefined ? '' : ` ${toUnmovedSentence(resource.unmoved)}`
  const keepUp = incremental
    ? unmoved
    : ' Nothing shows that the service sorts by `updated`: incremental exports read the whole list.'
  return `A read of this list can be proven${how}.${keepUp}`
}
