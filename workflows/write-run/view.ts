import { describeBreaker } from '../../core/runs/view/breaker.ts'
import { code, type Sentence, sentence, strong } from '../../core/runs/view/sentence.ts'
import { toCounts, type View } from '../../core/runs/view/view.ts'
import { controls, phaseStatus, throughputStatus, waitingStatus, workersStatus } from '../run/status.ts'
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
    throughput,
    workers,
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
      ...openBreakers.map((open) => `The breaker is open: ${describeBreaker(open, text.failed)}.`),
      ...text.notes,
      ...parkedStatus(progress),
      ...throughputStatus(throughput, text.rate),
      ...workersStatus(workers),
    ],
    counts: toCounts(counts),
    unit,
    tables: staged?.tables ?? [],
    controls: [
      ...controls({ ...text, between: `two ${text.rate}` }),
      sentence`${strong('Send an Update')}: ${code('setLimits')} changes rate, concurrency and bounds; ${code('resolve')} settles parked ${unit}.`,
    ],
  }
}

/** Lists the parked rows and how to resolve them. */
function parkedStatus({ counts, parkedRows = [] }: WriteProgress): Sentence[] {
  const [first] = parkedRows
  if (first === undefined) return []
  const others = (counts?.parked ?? 0) - parkedRows.length
  const rows = `${parkedRows.length === 1 ? 'row' : 'rows'} ${parkedRows.join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  const answer = `{"row": ${first}, "exists": "<id>", "by": "your name", "why": "..."}`
  return [
    sentence`Parked: ${strong(rows)} (the header is row 1). The service did not answer: look there whether the row was done. Then More Actions, ${strong('Send an Update')}, ${code('resolve')} with ${code(answer)}; instead of ${code('"exists"')}, ${code('"absent": true')} sends it again and ${code('"drop": true')} skips it.`,
  ]
}
