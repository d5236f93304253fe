import { heartbeatOf } from './heartbeat.ts'
import type { Client, WorkflowExecutionDescription } from '@temporalio/client'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Progress } from '../terminal/progress.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type WorkflowHandle } from '@temporalio/client'
import type { exportData } from '../../workflows/export-data.ts'

const lookEveryMs = 1_000

/** A worker that lives takes up a run in milliseconds, one that was killed is missed after a few seconds. */
const takenUpWithinMs = 15_000

/** What a read's heartbeat says. */
interface Heartbeat {
  records?: number
  requests?: number
  total?: number
}

/** Shows how far each read of a run is, and what keeps it waiting, until the signal. */
export async function showExport(options: {
  client: Client
  handle: ExportHandle
  terminal: Terminal
  signal: AbortSignal
}): Promise<void> {
  const { client, handle, terminal, signal } = options
  const bars = new Map<string, Progress>()
  const said = new Set<string>()
  let takenUpAt = performance.now()
  const say = (line: string) => {
    if (!said.has(line)) terminal.note(line)
    said.add(line)
  }
  while (!signal.aborted) {
    const look = () => lookAt({ client, handle })
    const seen = await client.withAbortSignal(signal, look).catch(() => undefined)
    for (const { resource, beat } of seen?.reads ?? []) {
      if (beat.records === undefined) continue
      const bar = bars.get(resource) ?? terminal.progress({ name: resource, unit: 'records' })
      bars.set(resource, bar)
      bar.update({ done: beat.records, total: beat.total, note: `${beat.requests ?? 0} requests` })
    }
    for (const failure of seen?.failures ?? []) say(`It is tried again after: ${failure}`)
    if (seen?.waitsForWorker !== true) takenUpAt = performance.now()
    else if (performance.now() - takenUpAt > takenUpWithinMs)
      say('No worker takes up the run: is `connector worker` running? The run waits for it.')
    await sleep(lookEveryMs, undefined, { signal }).catch(() => undefined)
  }
  for (const bar of bars.values()) bar.end()
}

async function lookAt({ client, handle }: { client: Client; handle: ExportHandle }) {
  const whole = await handle.describe()
  const running = (whole.raw.pendingChildren ?? []).map(({ workflowId }) => workflowId ?? '')
  const reads = await Promise.all(
    running.map(async (id) => {
      const description = await client.workflow.getHandle(id).describe()
      const beat = heartbeatOf<Heartbeat>(description)
      return { resource: id.slice(id.lastIndexOf('/') + 1), beat, description }
    }),
  )
  const all = [whole, ...reads.map(({ description }) => description)]
  return { reads, failures: all.flatMap(failuresOf), waitsForWorker: all.some(waitsForWorker) }
}

/** Why steps that are tried again failed the last time; a worker that was told to end is no failure. */
export function failuresOf({ raw }: WorkflowExecutionDescription): string[] {
  return (raw.pendingActivities ?? []).flatMap(({ lastFailure }) => {
    const isShutdown = lastFailure?.applicationFailureInfo?.type === 'WorkerShutdown'
    return typeof lastFailure?.message === 'string' && !isShutdown ? [lastFailure.message] : []
  })
}

/** Whether something of the run lies in the task queue, taken by nobody. */
export function waitsForWorker({ raw }: WorkflowExecutionDescription): boolean {
  const { pendingWorkflowTask: task, pendingActivities: activities } = raw
  const isTaken = (startedAt: unknown) => startedAt !== null && startedAt !== undefined
  const workflowWaits = task !== null && task !== undefined && !isTaken(task.startedTime)
  return workflowWaits || (activities ?? []).some(({ lastStartedTime }) => !isTaken(lastStartedTime))
}

/** An export, or a run that publishes one again: both end in the report of an export. */
export type ExportHandle = WorkflowHandle<typeof exportData>
