import type { RecoveryLimits } from '../core/recoveries/input.ts'
import type { Snapshot } from '../core/recoveries/open.ts'
import { sentence, strong } from '../core/runs/view/sentence.ts'
import type { StagedChanges, WriteProgress } from './write-run/progress.ts'
import type { ViewText } from './write-run/view.ts'

export type StagedRecovery = Snapshot & StagedChanges

export interface RecoveryProgress extends WriteProgress<StagedRecovery> {
  limits: RecoveryLimits
  /** Reasons whose canary failed: their other subscriptions are not tried. */
  failedCanaries: readonly string[]
}

export function toRecoveryText({ failedCanaries, staged }: RecoveryProgress): ViewText {
  const { candidates = 0, proven = false, reasons = [] } = staged ?? {}
  const whole = proven
    ? 'the list was read completely'
    : `the list was not read completely: ${reasons.join('; ')}`
  return {
    name: 'recovery',
    title: 'Recovery of subscriptions',
    unit: 'subscriptions',
    rate: 'resumes',
    notes: [
      ...failedCanaries.map(
        (reason) => sentence`The canary of ${strong(reason)} failed, so no others of it are tried.`,
      ),
      ...(staged === undefined ? [] : [`${candidates} need attention; ${whole}.`]),
    ],
    questions: {
      approval: 'Nothing was resumed yet.',
      canary: 'The first ones were resumed.',
      breaker:
        'Too many resumes failed, and so did every trial after that. Approve to try the others anyway; stop to end it here.',
    },
    parked: {
      resolves: 'subscriptions that were resumed and lost their reply',
      doubt:
        'of recovery.csv. The service did not answer the resume, and no lookup shows its effect: look there whether the subscription was resumed.',
      others: 'need a person for another reason, which the report names.',
    },
    failed: 'resumes fell back',
    stop: 'resumes nothing more, waits until the results of the last ones are seen, and ends with a report. A second stop does not wait.',
    terminate: 'The next recovery first looks up what this one resumed.',
  }
}
