import { inputCommand } from '../runs/input-fields.ts'
import { shell } from '../runs/view/shell.ts'
import type { NextStep } from '../runs/view/view.ts'
import { recoveryInput } from './input.ts'
import type { RecoveryReport } from './view.ts'

type Input = Readonly<Record<string, unknown>>

/** What a person can do after a recovery, or while it is active, with complete commands. */
export function recoveryNextSteps(
  report: Pick<
    RecoveryReport,
    'run' | 'verdict' | 'ended' | 'counts' | 'continueWith' | 'snapshot' | 'failedCanaries'
  >,
  asked: Input,
): NextStep[] {
  const { run, verdict, ended, counts, continueWith, snapshot, failedCanaries } = report
  if (verdict === 'dryRun')
    return [{ text: 'to resume them', command: recoverCommand({ ...asked, dryRun: false }) }]
  if (ended === undefined) return [{ text: 'to follow the run', command: shell`connector watch ${run}` }]
  // The same command would resume the same ones first, and they would fail again.
  const causes = failedCanaries.map(({ reason, notTried }) => ({
    text: `find out in the service why all that went first for ${reason} failed, then recover the other ${notTried}`,
  }))
  const beyond =
    counts.notTried + counts.staged - failedCanaries.reduce((sum, { notTried }) => sum + notTried, 0)
  if (continueWith !== undefined)
    return [
      ...causes,
      {
        text: `${reasonOf(beyond, snapshot?.capped === true)}; to continue`,
        command: recoverCommand(continueWith),
      },
    ]
  if (causes.length > 0) return causes
  if (verdict !== 'unproven') return []
  const command = recoverCommand(asked)
  if (counts.unknown > 0)
    return [{ text: `another recovery looks up the ${counts.unknown} unknown first`, command }]
  // What is parked needs a person: the report says what to do, and another recovery would not resume it.
  return snapshot?.proven === false || ended.how === 'failed' ? [{ text: 'to try again', command }] : []
}

function reasonOf(left: number, capped: boolean): string {
  if (capped) return 'the list has more pages than were read'
  return left === 0 ? 'some were not tried' : `${left} were not tried`
}

const recoverCommand = (input: Input): string => inputCommand(['recover'], recoveryInput, input)
