import { formatWere } from '../../core/runs/view/format.ts'
import { sentence, strong } from '../../core/runs/view/view.ts'
import type { ImportProgress, RecoveryProgress } from './progress.ts'
import type { ViewText } from './view.ts'

/** The texts that differ between the jobs; `opening` and `staging` are the summaries of the first steps. */
export const texts = {
  import: {
    control: { between: 'two changes', kept: 'the ledger has everything that was sent' },
    operator: {
      limits: {
        requestsPerSecond: 2,
        concurrency: 1,
        maxChanges: 500,
        maxFailures: 10,
        maxFailureShare: 0.2,
      },
      report:
        'Row numbers by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. Done rows are in results.csv.',
    },
    opening: 'check input, copy the file',
    staging: 'check and stage every row',
    stoppedWhileOpening: 'Stopped before the file was read; this execution sent nothing.',
    stopped: 'stopped; the same import resumes from there',
    notApproved: 'nobody approved in time; the same import asks again',
  },
  recovery: {
    control: { between: 'two resumes', kept: 'every resume is on record' },
    operator: {
      limits: { requestsPerSecond: 2, concurrency: 1, maxChanges: 100, maxFailureShare: 0.2 },
      lowerOnly: ['maxChanges'],
      report:
        'Subscriptions by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. All of them are in recovery.csv.',
    },
    opening: 'check input and service',
    staging: 'read what needs attention',
    stoppedWhileOpening: 'Stopped before anything was read; this execution resumed nothing.',
    stopped: 'stopped by a person',
    notApproved: 'nobody approved in time',
  },
}

/** The Current Details of an import. */
export function toImportText({ kind, file, staged }: ImportProgress): ViewText {
  const { sent = 0, canary = [] } = staged ?? {}
  const before =
    sent === 0 ? 'Nothing was sent yet.' : `${formatWere(sent)} sent. Approve to send the others.`
  return {
    name: 'import',
    title: `Import of ${kind ?? 'a file'}${file === undefined ? '' : ` from ${file.split('/').at(-1)}`}`,
    unit: 'rows',
    rate: 'rows',
    notes:
      staged === undefined
        ? []
        : [`${staged.totals.rows} rows, ${staged.totals.changes} changes, ${staged.invalid} invalid.`],
    questions: {
      approval: before,
      canary:
        canary.length === 0
          ? before
          : `Rows ${canary.join(', ')} were sent first: check them in the service. Approve to send the others.`,
      breaker:
        'Too many changes failed, so the breaker is open, and its trials failed too. Approve to try the others anyway.',
    },
    parked: {
      resolves: 'parked rows',
      doubt: '(numbered as in the sheet). The service did not answer: look there whether the row was done.',
    },
    failed: 'rows failed',
    stop: 'ends the run cleanly, with a report.',
    terminate: sentence`${strong('Start Workflow Like This One')} resumes with the remaining rows, also after a stop. Nothing is ever sent twice.`,
  }
}

/** The Current Details of a recovery. */
export function toRecoveryText({ failedCanaries, staged }: RecoveryProgress): ViewText {
  const { sent = 0, candidates = 0, proven = false, reasons = [] } = staged ?? {}
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
      approval:
        sent === 0
          ? 'Nothing was resumed yet.'
          : `${formatWere(sent)} resumed. Approve to resume the others.`,
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
