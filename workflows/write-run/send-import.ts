import { proxyActivities } from '@temporalio/workflow'
import type { SendStep } from '../../core/changes/send/segment.ts'
import type { Activities } from '../../activities/index.ts'
import type { Staged } from '../../core/imports/run-files.ts'
import type { ImportPlan } from '../../core/imports/plan.ts'
import type { Desk } from './operator.ts'
import type { ImportProgress } from '../import-details.ts'
import { refOf } from '../ref-of.ts'
import type { RunControl } from '../run/control.ts'
import { newThread, sendSome, type Sending, type SendingEnd } from './send-loop.ts'
import { sendingPatience } from '../run/activity-options.ts'

const { sendImport } = proxyActivities<Activities>(sendingPatience)

interface ImportSending {
  plan: ImportPlan
  staged: Staged
  progress: ImportProgress
  show: () => void
  control: RunControl
  desk: Desk
}

/** Sends an import's changes: asks a person where one is to be asked, the canary first, then the rest. */
export async function sendAll(run: ImportSending): Promise<SendingEnd> {
  const { plan, staged, desk } = run
  const isCreateOrDelete = !plan.kind.startsWith('update')
  const sending = toSending(run)
  if (staged.open > 0 && plan.approval && !plan.decided.approval) {
    const count = plan.kind === 'delete-orders' ? { count: staged.open } : {}
    if (!(await desk.ask({ what: 'approval', seconds: plan.approvalSeconds, ...count })))
      return notApproved(run)
  }
  if (staged.canary.length > 0) {
    const end = await sendSome({ ...sending, rows: staged.canary, afterCanary: afterCanary(staged.canary) })
    if (end !== undefined) return end
  }
  const isAsked = plan.confirmCanary && isCreateOrDelete && !plan.decided.canary
  if (staged.open > staged.canary.length && isAsked) {
    if (!(await desk.ask({ what: 'canary', seconds: plan.approvalSeconds }))) return notApproved(run)
  }
  return (await sendSome(sending)) ?? { how: 'finished', giveUp: false }
}

const stopped = 'stopped; the same import goes on from there'

function toSending({ plan, staged, progress, ...parties }: ImportSending): Sending {
  const { attended, approvalSeconds } = plan
  return {
    ...parties,
    progress,
    attended,
    approvalSeconds,
    stopped,
    thread: newThread(),
    open: staged.open,
    send: (input, summary) =>
      sendImport.executeWithOptions({ summary }, [{ ...refOf(plan), limits: progress.limits, ...input }]),
    afterStep: async ({ ended }) => {
      const { maxChanges, maxFailures } = progress.limits
      const giveUp = (why: string) => ({ how: 'finished', giveUp: true, why }) as const
      if (ended === 'maxChanges') return giveUp(`the bound of ${maxChanges} changes was reached`)
      if (ended === 'maxFailures') return giveUp(`more than ${maxFailures} changes failed`)
      return undefined
    },
  }
}

const notApproved = ({ control }: ImportSending): SendingEnd => ({
  how: 'stopped',
  giveUp: false,
  why: control.stopping ? stopped : 'nobody approved in time; the same import asks again',
})

const afterCanary =
  (rows: readonly number[]) =>
  async ({ failedCanaries }: SendStep): Promise<SendingEnd | undefined> => {
    if (failedCanaries.length === 0) return undefined
    const why = `all ${rows.length} rows of the canary failed (${rows.join(', ')}), so no other was sent`
    return { how: 'finished', giveUp: true, why }
  }
