import { type LookUpDeps, lookUp } from './look-up.ts'
import type { Outcome } from './outcomes.ts'

/** A control this old still says that look-ups find what is there. */
const freshMs = 10_000

type ControlOptions = LookUpDeps & { run: string }

/**
 * Whether the look-up can find anything at all: the same look-up for the change of this run that was done last.
 * A filter that is ignored, or a list that lags behind, would call everything absent.
 */
export class Control {
  readonly #options: ControlOptions
  #foundAt = -Infinity

  constructor(options: ControlOptions) {
    this.#options = options
  }

  /** Undefined where it has just found what is known to be done; else why an absence can't be believed. */
  async failure(): Promise<{ outcome: Outcome; words: string } | undefined> {
    if (performance.now() - this.#foundAt < freshMs) return undefined
    const known = await this.#options.ledger.lastDone({ run: this.#options.run })
    if (known === undefined)
      return { outcome: 'noControl', words: 'no change of this run is known to be done' }
    const seen = await lookUp(this.#options, known)
    if (seen.seen === 'done' && seen.id === known.answerId) {
      this.#foundAt = performance.now()
      return undefined
    }
    return {
      outcome: 'controlFailed',
      words: `the same look-up does not find row ${known.row}, which is done as ${known.answerId}`,
    }
  }
}
