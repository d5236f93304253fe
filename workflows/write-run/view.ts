import { describeBreaker } from '../../core/runs/view/trouble.ts'
import { code, type Sentence, sentence, strong, toCounts, type View } from '../../core/runs/view/view.ts'
import { controls, phaseStatus, throughputStatus, waitingStatus } from '../run/status.ts'
import { troublesStatus } from '../run/troubles.ts'
import type { WaitingFor, WriteProgress } from './progress.ts'

/** The job-specific text of the Current Details of a write run. */
export interface ViewText {
  /** For example `import`. */
  name: string
  title: string
  unit: string
  /** The unit that the throughput counts. */
  rate: string
  /** Shown below the status: the file, or the reasons that are not tried. */
  notes: readonly Sentence[]
  questions: Readonly<Record<WaitingFor, string>>
  parked: {
    /** What the update resolve records the outcome of. */
    resolves: string
    /** Follows the numbers of the rows in doubt: why they are. */
    doubt: string
    /** Where the other parked ones are explained; absent if all are in doubt. */
    others?: string
  }
  /** Follows a count of changes, for example `resumes fell back`. */
  failed: string
  /** The effect of `stop` and of Terminate. */
  stop: string
  terminate: Sentence
}

/** The view of an active write run, for the Temporal UI. */
export function toLiveView(progress: WriteProgress, text: ViewText): View {
  const {
    run,
    identity,
    waitingFor,
    phase,
    nextAt,
    openBreakers = [],
    troubles,
    throughput,
    counts,
    staged,
  } = progress
  const { name, unit } = text
  return {
    title: text.title,
    run,
    identity,
    status: [
      ...(waitingFor === undefined
        ? [phaseStatus({ name, phase, nextAt })]
        : waitingStatus({ ...waitingFor, name, why: text.questions[waitingFor.question] })),
      ...troublesStatus(troubles),
      ...openBreakers.map((open) => `The breaker is open: ${describeBreaker(open, text.failed)}.`),
      ...text.notes,
      ...parkedStatus(progress, text),
      ...throughputStatus(throughput, text.rate),
    ],
    counts: toCounts(counts),
    unit,
    tables: staged?.tables ?? [],
    controls: [
      ...controls({ ...text, between: `two ${text.rate}` }),
      sentence`${strong('Send an Update')}, ${code('setLimits')}: changes rate, concurrency and bounds.`,
      sentence`${strong('Send an Update')}, ${code('resolve')}: records what happened to ${text.parked.resolves}.`,
    ],
  }
}

/** Says how many parked rows are explained elsewhere, and how to resolve those in doubt. */
function parkedStatus({ counts, parkedRows = [] }: WriteProgress, { parked }: ViewText): Sentence[] {
  const [first] = parkedRows
  const others = Math.max(0, (counts?.parked ?? 0) - parkedRows.length)
  const isElsewhere = parked.others !== undefined
  const elsewhere = isElsewhere && others > 0 ? [`${others} ${parked.others}`] : []
  if (first === undefined) return elsewhere
  const more = !isElsewhere && others > 0 ? ` and ${others} more` : ''
  const rows = `${parkedRows.length === 1 ? 'row' : 'rows'} ${parkedRows.join(', ')}${more}`
  const answer = `{"row": ${first}, "exists": "<id>", "by": "your name", "why": "..."}`
  return [
    sentence`Parked: ${strong(rows)} ${parked.doubt} Then More Actions, ${strong('Send an Update')}, ${code('resolve')} with ${code(answer)}; instead of ${code('"exists"')}, ${code('"absent": true')} sends it again and ${code('"drop": true')} skips it.`,
    ...elsewhere,
  ]
}
