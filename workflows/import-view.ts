import type { ImportLimits, ImportPlan } from '../core/imports/input.ts'
import type { Staged } from '../core/imports/run-files.ts'
import { sentence, strong } from '../core/runs/view/sentence.ts'
import type { StagedChanges, WriteProgress } from './write-run/progress.ts'
import type { ViewText } from './write-run/view.ts'

export type StagedImport = Staged & StagedChanges

export interface ImportProgress extends WriteProgress<StagedImport> {
  kind?: ImportPlan['kind']
  file?: string
  limits: ImportLimits
}

export function toImportText({ kind, file, staged }: ImportProgress): ViewText {
  const { rows = 0, changes = 0, invalid = 0, canary = [] } = staged ?? {}
  return {
    name: 'import',
    title: `Import of ${kind ?? 'a file'}`,
    unit: 'rows',
    rate: 'rows',
    notes: [
      ...(file === undefined ? [] : [`${kind} from ${file}`]),
      ...(staged === undefined ? [] : [`${rows} rows, ${changes} changes, ${invalid} invalid.`]),
    ],
    questions: {
      approval: 'Nothing was sent yet.',
      canary:
        canary.length === 0
          ? 'Nothing was sent yet.'
          : `Rows ${canary.join(', ')} were sent first: check them in the service. Approve to send the others.`,
      breaker:
        'Too many changes failed, so the breaker is open, and its trials failed too. Approve to try the others anyway.',
    },
    parked: {
      resolves: 'parked rows',
      doubt: '(the header is row 1). The service did not answer: look there whether the row was done.',
    },
    failed: 'rows failed',
    stop: 'ends the run cleanly, with a report.',
    terminate: sentence`${strong('Start Workflow Like This One')} resumes with the remaining rows, also after a stop. Nothing is ever sent twice.`,
  }
}
