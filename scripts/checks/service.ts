import type { Billing } from '../../core/billing/client.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import type { ListResource } from '../../core/billing/resources/resource.ts'
import { isInOrder } from '../../core/reading/order.ts'
import { formatDuration } from '../../core/runs/view/format.ts'
import { fine, look, wrong, type Finding } from './finding.ts'

/** Somebody waits for the answer: what does not come in three tries is told. */
const tries = 3

/** Whether the service answers to this token and workspace, and what each list lets a read prove. */
export async function checkService(options: { billing: Billing; testMode: boolean }): Promise<Finding[]> {
  const [reached, ...clock] = await look('service', async () => {
    const asked = Date.now()
    const { servedAt } = await options.billing.list({
      resource: listResources.plans,
      page: 1,
      pageSize: 1,
      tries,
    })
    return [fine('service', 'It answers to this token and workspace.'), ...compareClocks({ asked, servedAt })]
  })
  if (reached === undefined || !reached.ok) return reached === undefined ? [] : [reached]
  const lists = await Promise.all(
    Object.values(listResources).map((resource) =>
      look(resource.name, () => checkList({ ...options, resource })),
    ),
  )
  return [reached, ...clock, ...lists.flat()]
}

/** A clock that is kept by NTP is off by milliseconds; the Date of an answer is cut to the second. */
const mostSkewMs = 60_000

/** Says nothing where the clocks agree, or the service does not tell its own. */
function compareClocks({ asked, servedAt }: { asked: number; servedAt: number | undefined }): Finding[] {
  if (servedAt === undefined) return []
  const answered = Date.now()
  const ahead = servedAt < asked ? asked - servedAt : Math.min(0, answered - servedAt)
  if (Math.abs(ahead) <= mostSkewMs) return []
  const off = `${formatDuration(Math.abs(ahead))} ${ahead > 0 ? 'ahead of' : 'behind'}`
  return [
    wrong(
      'clock',
      `This machine's clock is ${off} the service's. Let NTP set it (timedatectl set-ntp true): schedules, ages and time-outs go by it.`,
    ),
  ]
}

async function checkList(options: {
  billing: Billing
  testMode: boolean
  resource: ListResource
}): Promise<Finding[]> {
  const { billing, testMode, resource } = options
  const ask = async (ordering: string) =>
    (await billing.list({ resource, page: 1, pageSize: 100, ordering, tries })).records as Record<
      string,
      unknown
    >[]
  const [up, down, changed] = [await ask('created'), await ask('-created'), await ask('updated')]
  const foreign = up.filter(
    (record) => typeof record['test_mode'] === 'boolean' && record['test_mode'] !== testMode,
  )
  const findings =
    foreign.length === 0
      ? []
      : [
          wrong(
            resource.name,
            `The test-mode header is not honoured: ${foreign.length} records of the other mode came.`,
          ),
        ]
  const ascending = isInOrder(up, 'created')
  const descending = isInOrder(down.toReversed(), 'created')
  const incremental = isInOrder(changed, 'updated')
  if (!ascending)
    return [
      ...findings,
      wrong(resource.name, 'The order of `created` is not honoured: no read of this list can be proven.'),
    ]
  const how = descending ? '' : ' (`-created` is not honoured: the newest are found from the end)'
  const keepUp = incremental ? '' : ' `updated` is not honoured: incremental exports read the whole list.'
  return [...findings, fine(resource.name, `A read of this list can be proven${how}.${keepUp}`)]
}
