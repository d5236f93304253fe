import { heartbeatOf } from './heartbeat.ts'
import type { Client, WorkflowHandle } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReportCounts } from '../../core/runs/counts.ts'
import type { WriteProgress } from '../../workflows/write-run/progress.ts'
import { failuresOf, waitsForWorker } from './show-export.ts'
import { formatDuration } from '../terminal/format.ts'
import type { Progress as Bar } from '../terminal/progress.ts'
import type { Terminal } from '../terminal/terminal.ts'

const lookEveryMs = 1_000
/** A worker that lives takes up a run in milliseconds, one that was killed is missed after a few seconds. */
const takenUpWithinMs = 15_000
/** The rate shown is that of the last so many looks. */
const rateLooks = 15

export interface Show<Progress extends WriteProgress> {
  client: Client
  handle: Pick<WorkflowHandle, 'describe' | 'query'>
  /** What is counted, in the plural, and how the bar is called. */
  unit: string
  nameOf: (progress: Progress) => string
  terminal: Terminal
  signal: AbortSignal
  /** Called once for each question that the run has for a person. */
  onQuestion: (progress: Progress) => Promise<void>
}

/** Shows how far a run of changes is, with its rate and the time that is left, and passes on what it asks. */
export async function showChanges<Progress extends WriteProgress>(show: Show<Progress>): Promise<void> {
  const { client, handle, unit, nameOf, terminal, signal, onQuestion } = show
  const said = new Set<string>()
  const rate = createRate()
  let bar: Bar | undefined
  let asked: string | undefined
  let takenUpAt = performance.now()
  const say = (line: string) => {
    if (!said.has(line)) terminal.note(line)
    said.add(line)
  }
  while (!signal.aborted) {
    const seen = await client.withAbortSignal(signal, () => lookAt<Progress>(handle)).catch(() => undefined)
    const counts = seen?.counts
    if (counts !== undefined && seen?.progress !== undefined) {
      bar ??= terminal.progress({ name: nameOf(seen.progress), unit })
      bar.update(toState(counts, rate))
    }
    for (const failure of seen?.failures ?? []) say(`It is tried again after: ${failure}`)
    if (seen?.waitsForWorker !== true) takenUpAt = performance.now()
    else if (performance.now() - takenUpAt > takenUpWithinMs)
      say('No worker takes up the run: is `connector worker` running? The run waits for it.')
    const question = seen?.progress?.waitingFor
    if (question !== undefined && seen?.progress !== undefined && asked !== question.until) {
      asked = question.until
      bar?.end()
      bar = undefined
      await onQuestion(seen.progress)
    }
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined)
  }
  bar?.end()
}

async function lookAt<Progress extends WriteProgress>(handle: Show<Progress>['handle']) {
  const description = await handle.describe()
  const progress = await handle.query<Progress>('status').catch(() => undefined)
  const beat = heartbeatOf<ReportCounts>(description)
  const counts = beat.done === undefined ? progress?.counts : { ...progress?.counts, ...beat }
  return {
    progress,
    counts,
    failures: failuresOf(description),
    waitsForWorker: waitsForWorker(description),
  }
}

function toState(counts: Partial<ReportCounts>, rate: ReturnType<typeof createRate>) {
  const { done = 0, rejected = 0, parked = 0, skipped = 0, notTried = 0, staged = 0, unknown = 0 } = counts
  const ended = done + rejected + parked + skipped + notTried
  const total = ended + staged + unknown
  const perSecond = rate(ended)
  // While the first ones are looked at nothing has ended yet, which is no pace.
  const pace =
    perSecond > 0
      ? [`${perSecond.toFixed(1)} a second`, `${formatDuration(((total - ended) / perSecond) * 1000)} left`]
      : []
  const others = Object.entries({ rejected, parked, unknown }).filter(([, count]) => count > 0)
  const words = [...pace, ...others.map(([name, count]) => `${count} ${name}`)]
  return { done: ended, total, note: words.join(', ') }
}

function createRate() {
  const looks: { at: number; count: number }[] = []
  return (count: number): number => {
    looks.push({ at: performance.now(), count })
    if (looks.length > rateLooks) looks.shift()
    const [first] = looks
    const last = looks.at(-1)
    if (first === undefined || last === undefined || last.at === first.at) return 0
    return (1000 * (last.count - first.count)) / (last.at - first.at)
  }
}
