import type { RecoveryReport } from '../../core/recoveries/view.ts'
import type { Snapshot } from '../../core/recoveries/run-files.ts'
import type { RecoveryPlan } from '../../core/recoveries/plan.ts'
import type { Desk } from './operator.ts'
import type { Marks } from '../run/search-attributes.ts'
import type { RunControl } from '../run/control.ts'
import { shell } from '../../core/runs/view/shell.ts'

interface Ended {
  desk: Desk<RecoveryPlan, RecoveryReport>
  control: RunControl
  marks: Marks
}

/** Marks how a recovery ended, and tells people of it. */
export async function tellEnd({ desk, control, marks }: Ended, report: RecoveryReport): Promise<void> {
  const { run, counts, summary, verdict } = report
  const { notices } = desk
  marks.set({ verdict, needsPerson: verdict === 'unproven' || counts.parked + counts.rejected > 0 })
  if (counts.parked > 0)
    return await notices.tell({ kind: 'parked', summary, command: shell`connector report ${run}`, report })
  const isAsWanted = verdict !== 'unproven' || control.stopping
  await notices.tell({ kind: isAsWanted ? 'ended' : 'unproven', summary, report })
}

/** A schedule looks every now and then, and people hear of it when there is too much. */
export async function tellPreview(
  { plan, snapshot, desk, marks }: Ended & { plan: RecoveryPlan; snapshot: Snapshot },
  report: RecoveryReport,
): Promise<void> {
  const { notifyAbove = Infinity } = plan
  const { candidates } = snapshot
  const { summary: told, verdict } = report
  const isTooMuch = candidates > notifyAbove
  marks.set({ verdict, needsPerson: isTooMuch })
  if (!isTooMuch) return await desk.notices.tell({ kind: 'ended', summary: told, report })
  const summary = `${candidates} subscriptions need attention, more than ${notifyAbove}; ${told}`
  await desk.notices.tell({ kind: 'attention', summary, command: 'connector recover', report })
}
