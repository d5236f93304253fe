import type { BillingError } from './errors.ts'

/** A pause that the service asked for; ms since 1970. */
export interface Pause {
  since: number
  asked: number
  until: number
}

/** As in core/runs/view/trouble.ts. */
export interface Trouble {
  what: string
  since: number
  failures: number
  pause?: { asked: number; until: number }
}

/** Remembers why the requests of one step fail or wait: an outage that nobody is told of looks like a slow run. */
export class TroubleWatch {
  #failing: Trouble | undefined
  #queued = 0
  #pause: () => Pause | undefined = () => undefined

  /** `before`: the trouble of the step's last attempt. */
  constructor(before?: Trouble) {
    this.#failing = before && { what: before.what, since: before.since, failures: before.failures }
  }

  /** Where requests queue. */
  follow(pause: () => Pause | undefined): void {
    this.#pause = pause
  }

  /** A request waits for its turn until the promise resolves. */
  async queue<T>(turn: Promise<T>): Promise<T> {
    this.#queued += 1
    return await turn.finally(() => (this.#queued -= 1))
  }

  answered(): void {
    this.#failing = undefined
  }

  failed(error: BillingError): void {
    const { trouble: what } = error
    if (what === undefined) return this.answered()
    const { since = Date.now(), failures = 0 } = this.#failing ?? {}
    this.#failing = { what, since, failures: failures + 1 }
  }

  get trouble(): Trouble | undefined {
    const pause = this.#queued > 0 || this.#failing !== undefined ? this.#pause() : undefined
    if (pause === undefined) return this.#failing
    const { since, asked, until } = pause
    return { what: 'asks for a pause', since, failures: 0, ...this.#failing, pause: { asked, until } }
  }
}
