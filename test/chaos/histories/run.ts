import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { ApplicationFailure } from '@temporalio/common'
import type { Attempt, ChaosWorker, Execution, StepName, StepResult } from './worker.ts'
import type { Blow } from './faults.ts'

/** A step failed for good. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed'
}

/** The run was terminated: it does nothing more, not even its report. */
export class Terminated extends Error {
  override readonly name = 'Terminated'
}

class Rewound extends Error {
  override readonly name = 'Rewound'
}

interface Step {
  name: StepName
  input: object
  isInterruptible: boolean
}

type Event = { value: unknown } | { interrupted: 'paused' | 'stopped' } | { failed: string }

/** What a blow does to the run that it struck. */
export type Struck =
  /** The step is tried again, by the worker that is there now. */
  | 'retried'
  | 'paused'
  | 'stopped'
  | 'terminated'
  /** Nothing: it continues. */
  | 'unhurt'
  /** Temporal's database was put back, or the run was reset: its history ends after so many events. */
  | { rewoundTo: number }

export interface Surroundings {
  worker: () => ChaosWorker
  /** What strikes the next step, and when: after so many pieces of traffic and so many turns of the event loop. */
  next: (of: { isInterruptible: boolean }) => { blow: Blow; traffic: number; turns: number } | undefined
  strike: (blow: Blow, struck: { attempt: Attempt; events: number; steps: number }) => Promise<Struck>
}

const mostTries = 200

/**
 * One execution of a workflow, as Temporal keeps it: what its steps gave, in order. A workflow that is begun again gets
 * the same results until the history ends, so that resetting it and putting Temporal's database back are one thing: a
 * shorter history.
 */
export class Run {
  execution: Execution
  /** Of the execution that this one was reset from, if it was: it stays the same. */
  readonly firstRunId: string
  readonly #around: Surroundings
  readonly #scheduledAt = Date.now()
  #events: Event[] = []
  #at = 0
  stopping = false

  constructor({ execution, around }: { execution: Execution; around: Surroundings }) {
    this.execution = execution
    this.firstRunId = execution.runId
    this.#around = around
  }

  async play<T>(workflow: (run: Run) => Promise<T>): Promise<T> {
    for (;;) {
      this.#at = 0
      this.stopping = false
      try {
        return await workflow(this)
      } catch (error) {
        if (!(error instanceof Rewound)) throw error
      }
    }
  }

  /** Undefined where the run was stopped meanwhile. @throws {StepFailed} */
  async untilStopped<Name extends StepName>(
    name: Name,
    input: object,
  ): Promise<StepResult<Name> | undefined> {
    while (!this.stopping) {
      const event = await this.#next({ name, input, isInterruptible: true })
      if ('value' in event) return event.value as StepResult<Name>
    }
    return undefined
  }

  /** A step that nothing interrupts: the report. */
  async toTheEnd<Name extends StepName>(name: Name, input: object): Promise<StepResult<Name>> {
    for (;;) {
      const event = await this.#next({ name, input, isInterruptible: false })
      if ('value' in event) return event.value as StepResult<Name>
    }
  }

  async #next(step: Step): Promise<Exclude<Event, { failed: string }>> {
    const event = this.#events[this.#at] ?? (await this.#try(step))
    this.#events[this.#at] = event
    this.#at += 1
    if ('failed' in event) throw new StepFailed(event.failed)
    if ('interrupted' in event && event.interrupted === 'stopped') this.stopping = true
    return event
  }

  async #try({ name, input, isInterruptible }: Step): Promise<Event> {
    let heartbeat: unknown
    for (let tries = 1; ; tries += 1) {
      const { execution } = this
      const step = { name, input, execution, scheduledAt: this.#scheduledAt, heartbeat }
      const attempt = this.#around.worker().start(step)
      const struck = await this.#struckBefore(attempt, isInterruptible)
      if (struck === undefined || struck === 'unhurt') {
        const event = await eventOf(attempt.result, tries)
        if (event !== undefined) return event
      } else if (struck === 'paused') return { interrupted: 'paused' }
      else if (struck === 'stopped') return { interrupted: 'stopped' }
      else if (struck === 'terminated') throw new Terminated()
      else if (struck !== 'retried') {
        this.#events = this.#events.slice(0, struck.rewoundTo)
        throw new Rewound()
      }
      heartbeat = attempt.heartbeat()
      await wait(2)
    }
  }

  /** Undefined where the step ended before anything struck it. */
  async #struckBefore(attempt: Attempt, isInterruptible: boolean): Promise<Struck | undefined> {
    const next = this.#around.next({ isInterruptible })
    if (next === undefined) return undefined
    const { blow, traffic, turns } = next
    const state = { isOver: false }
    const over = attempt.result.then(
      () => (state.isOver = true),
      () => (state.isOver = true),
    )
    const { gate } = this.#around.worker()
    let passed = 0
    const due = new Promise<void>((resolve) => {
      gate.onTraffic(() => {
        passed += 1
        if (passed >= traffic) resolve()
      })
      if (traffic === 0) resolve()
    })
    await Promise.race([over, due])
    for (let turned = 0; turned < turns && !state.isOver; turned += 1) await turn()
    gate.onTraffic(() => {})
    if (state.isOver) return undefined
    const steps = this.#events.slice(0, this.#at).filter((event) => 'value' in event).length
    return await this.#around.strike(blow, { attempt, events: this.#at, steps })
  }
}

/** Undefined where Temporal tries again. */
async function eventOf(result: Promise<unknown>, tries: number): Promise<Event | undefined> {
  try {
    const value = await result
    return { value: value === undefined ? null : (JSON.parse(JSON.stringify(value)) as unknown) }
  } catch (error) {
    if (!(error instanceof ApplicationFailure)) throw error
    const { type, message, nonRetryable } = error
    return nonRetryable === true || tries >= mostTries ? { failed: `${type}: ${message}` } : undefined
  }
}
