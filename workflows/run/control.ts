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
  /** Resolves when the run may continue: not paused, or asked to stop. */
  mayContinue(): Promise<void>
  /** Runs `work` until it is done or a person pauses or stops the run, which cancels its activity. */
  untilInterrupted<T>(work: () => Promise<T>): Promise<T | 'interrupted'>
  /** Runs `work`, again after each pause, until it is done. Undefined if the run was stopped first. */
  unlessStopped<T>(work: () => Promise<T>): Promise<T | undefined>
  /**
   * Cancels the current `work`, for the whole run also that of its parts, without a pause or stop, so that it starts again
   * with changed settings.
   */
  interrupt(): void
  /**
   * The control of a part of the run: its `interrupt` leaves the rest of the run alone. Nothing pauses a part after a
   * stop, and only a second stop ends it.
   */
  forPart(part?: { isAfterStop?: boolean }): RunControl
}

export interface ControlText {
  /** For example `two pages`. */
  between: string
  /** For example `what was read is kept`. */
  kept: string
}

/**
 * Registers the signals pause, unpause and stop, which every run accepts. Signals work even while no worker is
 * running. Request Cancellation in the Temporal UI means stop. Call it before the first await.
 */
export function controlRun(options: {
  onChange: (control: RunControl) => void
  /** Where a pause takes effect, and what a stop keeps. */
  text?: ControlText
  /** Whether the previous execution was paused. */
  paused?: boolean
}): RunControl {
  const { between, kept } = options.text ?? { between: 'two pages', kept: 'what was read is kept' }
  let { paused = false } = options
  let stops = 0
  const interruptsOf = new Map<RunControl, Set<() => void>>()
  const interruptWork = (isMeant: (part: RunControl) => boolean) => {
    for (const [part, interrupts] of interruptsOf)
      if (isMeant(part)) for (const interrupt of interrupts) interrupt()
  }

  const change = (to: { paused: boolean; stop?: true }) => {
    ;({ paused } = to)
    if (to.stop === true) stops += 1
    interruptWork((part) => part.paused || part.stopping)
    options.onChange(whole)
  }

  function createPart({ isAfterStop = false } = {}): RunControl {
    const interrupts = new Set<() => void>()
    const control: RunControl = {
      get paused() {
        return paused && !isAfterStop
      },
      get stopping() {
        return stops > (isAfterStop ? 1 : 0)
      },
      interrupt() {
        interruptWork((part) => part === control || control === whole)
      },
      async mayContinue() {
        await condition(() => !control.paused || control.stopping)
      },
      async untilInterrupted(work) {
        if (control.paused || control.stopping) return 'interrupted'
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
          if (control.stopping) return undefined
          const done = await control.untilInterrupted(work)
          if (done !== 'interrupted') return done
        }
      },
      forPart: createPart,
    }
    interruptsOf.set(control, interrupts)
    return control
  }
  const whole = createPart()

  setHandler(pause, () => change({ paused: true }), {
    description: `Halts the run between ${between}; ${kept}. Unpause resumes it.`,
  })
  setHandler(unpause, () => change({ paused: false }), {
    description: 'Resumes the run where the pause halted it.',
  })
  setHandler(stop, () => change({ stop: true, paused: false }), {
    description: 'Ends the run cleanly, with a report.',
  })
  CancellationScope.current().cancelRequested.catch(() => change({ stop: true, paused: false }))
  return whole
}

/** A worker that is gone cannot confirm the cancellation; Temporal then reports a timeout. */
const hasTimedOut = (error: unknown): boolean =>
  error instanceof ActivityFailure && error.cause instanceof TimeoutFailure

/** An attempt that failed during its cancellation and would otherwise have been retried. */
const isNotRetried = (error: unknown): boolean =>
  error instanceof ActivityFailure &&
  error.retryState === 'CANCEL_REQUESTED' &&
  error.cause instanceof ApplicationFailure &&
  error.cause.nonRetryable !== true

/**
 * The failure of a run that was stopped before it had anything to report. Nobody is notified, because a person
 * stopped it.
 */
export const stoppedBefore = (message: string) => ApplicationFailure.nonRetryable(message, 'Stopped')
