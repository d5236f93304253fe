import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  TimeoutFailure,
  condition,
  defineSignal,
  isCancellation,
  setHandler,
} from '@temporalio/workflow'

const pause = defineSignal('pause')
const unpause = defineSignal('unpause')
const stop = defineSignal('stop')

export interface RunControl {
  readonly paused: boolean
  readonly stopping: boolean
  /** How often somebody asked it to stop. */
  readonly stops: number
  /** Resolves when the run may continue: not paused, or asked to stop. */
  mayContinue(): Promise<void>
  /** Does `work` until it is done, or until somebody pauses or stops the run: then its activity is asked to end. */
  untilInterrupted<T>(work: () => Promise<T>): Promise<T | 'interrupted'>
  /** Does `work`, again after each pause, until it is done. Undefined if the run was stopped before. */
  unlessStopped<T>(work: () => Promise<T>): Promise<T | undefined>
  /** Asks that work to end, and nothing else: it begins again with what has changed. */
  interrupt(): void
}

export interface ControlText {
  /** `two pages`. */
  between: string
  /** `what was read is kept`. */
  kept: string
}

/**
 * What people can do to every run: pause, unpause and stop, by signal, so that it works while no worker listens.
 * The Temporal UI's Request Cancellation means stop. Call it before the first await.
 */
export function controlRun(options: {
  onChange: (control: RunControl) => void
  /** Where a pause halts the run, and what a stop leaves. */
  text?: ControlText
  /** Whether the execution before this one was paused. */
  paused?: boolean
}): RunControl {
  const { between, kept } = options.text ?? { between: 'two pages', kept: 'what was read is kept' }
  let { paused = false } = options
  let stops = 0
  const interrupts = new Set<() => void>()

  const change = (to: { paused: boolean; stop?: true }) => {
    ;({ paused } = to)
    if (to.stop === true) stops += 1
    if (paused || stops > 0) control.interrupt()
    options.onChange(control)
  }

  const control: RunControl = {
    get paused() {
      return paused
    },
    get stopping() {
      return stops > 0
    },
    get stops() {
      return stops
    },
    interrupt() {
      for (const interrupt of interrupts) interrupt()
    },
    async mayContinue() {
      await condition(() => !paused || stops > 0)
    },
    async untilInterrupted(work) {
      if (paused || stops > 0) return 'interrupted'
      let interrupted = false
      const scope = new CancellationScope()
      const interrupt = () => {
        interrupted = true
        scope.cancel()
      }
      interrupts.add(interrupt)
      try {
        return await scope.run(work)
      } catch (error) {
        if (interrupted && (isCancellation(error) || hasTimedOut(error) || isNotRetried(error)))
          return 'interrupted'
        throw error
      } finally {
        interrupts.delete(interrupt)
      }
    },
    async unlessStopped(work) {
      for (;;) {
        await control.mayContinue()
        if (stops > 0) return undefined
        const done = await control.untilInterrupted(work)
        if (done !== 'interrupted') return done
      }
    },
  }

  setHandler(pause, () => change({ paused: true }), {
    description: `Halts the run between ${between}; ${kept}. Unpause resumes it.`,
  })
  setHandler(unpause, () => change({ paused: false }), {
    description: 'Resumes the run where the pause halted it.',
  })
  setHandler(stop, () => change({ stop: true, paused: false }), {
    description: `Ends the run cleanly, with a report; ${kept} for the next run of the same input.`,
  })
  CancellationScope.current().cancelRequested.catch(() => change({ stop: true, paused: false }))
  return control
}

/** A worker that is gone can't confirm that it ended the work; Temporal then says that it timed out. */
const hasTimedOut = (error: unknown): boolean =>
  error instanceof ActivityFailure && error.cause instanceof TimeoutFailure

/** An attempt that failed while it was asked to end, and would have been retried otherwise. */
const isNotRetried = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.retryState === 'CANCEL_REQUESTED' &&
  error.cause instanceof ApplicationFailure &&
  error.cause.nonRetryable !== true

/** Ends a run that was stopped before it had anything to report. Nobody is notified: a person stopped it. */
export const stoppedBefore = (message: string) => ApplicationFailure.nonRetryable(message, 'Stopped')
