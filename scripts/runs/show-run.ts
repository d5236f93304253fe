import { connector } from '../../core/runs/view/shell.ts'
import type { Client, WorkflowExecutionDescription, WorkflowHandle } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeBreaker, type OpenBreaker } from '../../core/runs/view/trouble.ts'
import { formatCountOf, formatDuration, formatLocalTime } from '../../core/runs/view/format.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import { places, type ReportCounts } from '../../core/runs/view/counts.ts'
import type { ExportProgress, ListProgress } from '../../workflows/export-view.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import type { Progress } from '../terminal/progress.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { heartbeatOf, heartbeatsOf, heldUp, toTexts, waitingTasks } from './held-up.ts'

const observeEveryMs = 1_000
/** In ms. A live worker picks up a run in milliseconds; a killed one is noticed after a few seconds. */
const pickedUpWithinMs = 15_000
/** The rate is averaged over this many observations. */
const rateSamples = 15

interface Bar {
  name: string
  unit: string
  done: number
  total: number | undefined
  note: string
}

interface Seen {
  bars: Bar[]
  description: WorkflowExecutionDescription
  /** Lines that are each shown once. */
  notes?: string[]
  /** An open question; its deadline distinguishes it from the previous one. */
  question?: { until: string; ask: (signal: AbortSignal) => Promise<void> }
}

/** Reads the current progress of a run. */
export type Observe = () => Promise<Seen>

/** Shows the progress of a run, what it waits for and its questions, until the signal is aborted. */
export async function showRun(options: {
  client: Client
  observe: Observe
  terminal: Terminal
  signal: AbortSignal
}): Promise<void> {
  const { client, observe, terminal, signal } = options
  const bars = new Map<string, Progress>()
  const noted = new Set<string>()
  let asked: string | undefined
  let pickedUpAt = performance.now()
  let waited = ''
  const noteOnce = (line: string, key = line) => {
    if (!noted.has(key)) terminal.note(line)
    noted.add(key)
  }
  const endBars = () => {
    for (const bar of bars.values()) bar.end()
    bars.clear()
  }
  while (!signal.aborted) {
    const seen = await client.withAbortSignal(signal, observe).catch(() => undefined)
    for (const { name, unit, ...state } of seen?.bars ?? []) {
      const bar = bars.get(name) ?? terminal.progress({ name, unit })
      bars.set(name, bar)
      bar.update(state)
    }
    for (const note of seen?.notes ?? []) noteOnce(note)
    for (const { key, text } of seen === undefined ? [] : heldUp(seen.description)) noteOnce(text, key)
    const waiting = seen === undefined ? [] : waitingTasks(seen.description)
    const keys = waiting.map(({ key }) => key).join()
    // A step that fails at once is never seen at work: another attempt shows that a worker had the last one.
    if (keys === '' || keys !== waited) pickedUpAt = performance.now()
    waited = keys
    const retryMs = Math.max(0, ...waiting.map((task) => task.retryMs))
    if (seen !== undefined && performance.now() - pickedUpAt > pickedUpWithinMs + retryMs)
      noteOnce(
        `No worker picks up the run from the task queue ${seen.description.taskQueue}, so it waits: is \`${connector`worker`}\` running?`,
      )
    if (seen?.question !== undefined && asked !== seen.question.until) {
      asked = seen.question.until
      endBars()
      await seen.question.ask(signal)
    }
    await sleep(observeEveryMs, undefined, { signal }).catch(() => undefined)
  }
  endBars()
}

/** Observes an export, with one bar per list. */
export function observeExport({ handle }: { handle: Pick<WorkflowHandle, 'describe' | 'query'> }): Observe {
  return async () => {
    const description = await handle.describe()
    const told = await handle.query<ExportProgress>('status').catch(() => undefined)
    const { resources = [] } = (told && withHeartbeats(told, description)) ?? {}
    const bars = resources.flatMap(({ resource: name, state, records, requests = 0, expected }) => {
      if (state !== 'reading' || records === undefined) return []
      const note = [formatCountOf(requests, 'requests'), ...heldUpBy(description, name)].join(', ')
      return [{ name, unit: 'records', done: records, total: expected, note }]
    })
    const inOrder = bars.toSorted((a, b) => orderOf(a.name) - orderOf(b.name))
    return { bars: inOrder, description }
  }
}

/** The progress of a run as its steps have it now: a workflow does not see the heartbeats of a step under way. */
export function withHeartbeats<P extends ExportProgress | WriteProgress>(
  progress: P,
  description: WorkflowExecutionDescription,
): P {
  if (!('resources' in progress)) {
    const beat = heartbeatOf<ReportCounts>(description)
    if (beat.done === undefined) return progress
    const counts = Object.fromEntries(places.map((place) => [place, beat[place] ?? 0]))
    return { ...progress, counts }
  }
  const beats = heartbeatsOf<ReadBeat>(description)
  const resources = progress.resources.map((list) =>
    list.state === 'reading' ? { ...list, ...countsOf(list, beats) } : list,
  )
  return { ...progress, resources }
}

/**
 * What the run knows of a list, and what the steps have read since; empty before the first page. A heartbeat counts from the
 * start of its range or, once the ranges are read, of the list.
 */
function countsOf(list: ListProgress, beats: readonly Partial<ReadBeat>[]) {
  let { records, requests = 0, expected } = list
  for (const beat of beats.filter(({ resource }) => resource === list.resource)) {
    const range = list.reading?.find((one) => one.range === (beat.range ?? 1) - 1)
    if (beat.records === undefined || (range === undefined && (list.reading?.length ?? 0) > 0)) continue
    const known = range ?? { records: records ?? 0, requests }
    records = (records ?? 0) + Math.max(0, beat.records - known.records)
    requests += Math.max(0, (beat.requests ?? 0) - known.requests)
    expected = beat.expected ?? expected
  }
  return records === undefined ? {} : { records, requests, ...(expected !== undefined && { expected }) }
}

/** As in the table of the result. */
const orderOf = (name: string) => Object.keys(listResources).indexOf(name)

/** The heartbeat of a step that reads a list. */
interface ReadBeat {
  resource: string
  /** From 1; absent if the list is not divided, or once its ranges are read. */
  range: number
  records: number
  requests: number
  expected: number
}

/** Observes a write run, with one bar for all changes, and its questions. */
export function observeChanges<P extends WriteProgress>(options: {
  handle: Pick<WorkflowHandle, 'describe' | 'query'>
  unit: ChangeUnit
  /** The name of the bar. */
  nameOf: (progress: P) => string
  onQuestion: (progress: P, signal: AbortSignal) => Promise<void>
}): Observe {
  const { handle, unit, nameOf, onQuestion } = options
  const rate = createRate()
  return async () => {
    const description = await handle.describe()
    const told = await handle.query<P>('status').catch(() => undefined)
    if (told === undefined) return { bars: [], description }
    const progress = withHeartbeats(told, description)
    const { counts, waitingFor, openBreakers = [] } = progress
    return {
      bars:
        counts === undefined
          ? []
          : [
              {
                name: nameOf(progress),
                unit,
                ...toState(counts, { ...progress, rate, waits: waitsOf(progress, description) }),
              },
            ],
      description,
      notes: breakerLines(openBreakers, unit),
      ...(waitingFor && {
        question: { until: waitingFor.until, ask: (signal) => onQuestion(progress, signal) },
      }),
    }
  }
}

export type ChangeUnit = 'rows' | 'subscriptions'

export const breakerLines = (open: readonly OpenBreaker[], unit: ChangeUnit): string[] =>
  open.map((one) => {
    const failed = unit === 'rows' ? 'rows failed' : 'resumes fell back'
    return `The breaker is open: ${describeBreaker(one, failed, formatLocalTime)}.`
  })

/** For the end of a bar: when the next lookup or attempt is due, and what holds up the run. */
const waitsOf = ({ nextAt }: WriteProgress, description: WorkflowExecutionDescription): string[] => [
  ...(nextAt === undefined ? [] : [`next at ${formatLocalTime(nextAt)}`]),
  ...heldUpBy(description),
]

/** For the end of a bar: what holds up the run, or one of its lists. */
const heldUpBy = (description: WorkflowExecutionDescription, resource?: string): string[] =>
  toTexts(heldUp(description, resource)).map((text) => text.replace(/\.$/, ''))

function toState(
  counts: Partial<ReportCounts>,
  of: Pick<WriteProgress, 'phase'> & { rate: (count: number) => number; waits: readonly string[] },
) {
  const { phase, rate, waits } = of
  const { done = 0, rejected = 0, parked = 0, skipped = 0, notTried = 0, staged = 0, unknown = 0 } = counts
  const ended = done + rejected + parked + skipped + notTried
  const total = ended + staged + unknown
  const perSecond = rate(ended)
  // Until its canary has results, and after a stop, a run sends no others.
  const isSending = staged > 0 && phase !== 'canary' && phase !== 'looking up'
  // There is no rate before the first change has finished, and lookups wait for the service, whatever the rate was.
  const pace =
    perSecond > 0 && (isSending || unknown === 0)
      ? [
          `${perSecond.toFixed(1)} a second`,
          ...(ended < total ? [`${formatDuration(((total - ended) / perSecond) * 1000)} left`] : []),
        ]
      : []
  // Those that are rejected or parked may never have been sent.
  const rest = isSending ? '' : ', the others once the service has settled (BILLING_SETTLE_SECONDS)'
  const checks = unknown === 0 ? [] : [`${done} of ${done + unknown} sent are checked${rest}`]
  const others = Object.entries({ rejected, parked }).filter(([, count]) => count > 0)
  const note = [...pace, ...checks, ...others.map(([name, count]) => `${count} ${name}`), ...waits].join(', ')
  return { done: ended, total, note }
}

function createRate() {
  const samples: { at: number; count: number }[] = []
  return (count: number): number => {
    samples.push({ at: performance.now(), count })
    if (samples.length > rateSamples) samples.shift()
    const [first] = samples
    const last = samples.at(-1)
    if (first === undefined || last === undefined || last.at === first.at) return 0
    return (1000 * (last.count - first.count)) / (last.at - first.at)
  }
}
