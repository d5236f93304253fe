import { formatTime } from '../../core/runs/view/format.ts'
import { code, piecesOf, type Sentence, sentence, strong } from '../../core/runs/view/view.ts'
import type { Throughput } from './throughput.ts'

// Sentences shared by the Current Details of all runs. Buttons are named as in the Temporal UI.

const update = strong('Send an Update')
const signal = strong('Send a Signal')

/** Says that the run waits for an approval, and which buttons answer. */
export function waitingStatus(question: {
  /** For example `import`. */
  name: string
  until: string
  /** What was done so far, and what an approval would do. */
  why: string
  /** The number that the person must type. */
  count?: number
}): Sentence[] {
  const { name, until, why, count } = question
  const answer = `{"by": "your name", "why": "..."${count === undefined ? '' : `, "count": ${count}`}}`
  return [
    sentence`The ${name} is ${strong('waiting for a person')} until ${formatTime(until, 'minutes')}. ${why}`,
    sentence`To approve: More Actions, ${update}, ${code('approve')} with ${code(answer)}.`,
    sentence`To end it: More Actions, ${signal}, ${code('stop')}.`,
  ]
}

export function phaseStatus(run: { name: string; phase: string; nextAt?: string | undefined }): Sentence {
  const { name, phase, nextAt } = run
  const next = nextAt === undefined ? '' : `, next at ${formatTime(nextAt)}`
  if (phase !== 'paused') return sentence`The ${name} is ${strong(phase)}${next}.`
  return sentence`The ${name} is ${strong(phase)}${next}. To resume: More Actions, ${signal}, ${code('unpause')}.`
}

/** The rate of the last segment, and the estimated end at that rate. */
export function throughputStatus(throughput: Throughput | undefined, unit: string): Sentence[] {
  if (throughput === undefined) return []
  const { perSecond, endsAt } = throughput
  const rate = perSecond < 10 ? perSecond.toFixed(1) : String(Math.round(perSecond))
  return [
    sentence`${strong(`${rate} ${unit} a second`)}; at that rate until about ${formatTime(endsAt, 'minutes')}.`,
  ]
}

/** The buttons that every run has, each with what it does. */
export const controls = (text: { between: string; stop: string; terminate: Sentence }): Sentence[] => [
  sentence`${signal}, ${code('pause')}: halts between ${text.between}; ${code('unpause')} resumes.`,
  sentence`${signal}, ${code('stop')}, or ${strong('Request Cancellation')}: ${text.stop}`,
  [...sentence`${strong('Terminate')}: ends it at once without a report. `, ...piecesOf(text.terminate)],
]
