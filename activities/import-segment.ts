import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../billing/client.ts'
import type { BreakerStates } from '../changes/breakers.ts'
import { canaryFailed } from '../changes/canary.ts'
import { defaultLimits, type Limits } from '../changes/limits.ts'
import { type ReportCounts, summarize } from '../changes/report.ts'
import type { SendChanges, SendResult } from '../changes/send-changes.ts'
import { settleChanges } from '../changes/settle-changes.ts'
import { importKinds } from '../imports/import-kind.ts'
import type { ImportLimits, ImportPlan } from '../imports/import-plan.ts'
import type { ActivityDeps } from './deps.ts'

export interface SendInput {
  plan: ImportPlan
  /** How long to send before the workflow is told how far it got. */
  seconds: number
  limits: ImportLimits
  breakers: BreakerStates
  /** Claims of the run as it was last told of them. */
  claims: number
  /** Only these, and all that becomes of them: the canary. */
  rows?: number[]
}

/** Where a segment ended: counts, row numbers and times only. */
export interface SendStep {
  ended:
    /** Nothing is left to send or to settle. */
    | 'finished'
    | 'timeUp'
    /** What is left is due at `nextAt`. */
    | 'waiting'
    | 'stopped'
    | 'breaker'
    | 'maxChanges'
    | 'maxFailures'
  nextAt?: number
  /** The breaker tries no more: only a person opens it again. */
  givenUp: boolean
  breakers: BreakerStates
  claims: number
  counts: ReportCounts
  /** All of the canary failed. */
  canaryFailed: boolean
}

/** A lost request is looked for while the others are still being sent: at least this often. */
const longestPassMs = 5_000
/** What is due within so long is waited for here: a timer of the workflow costs more. */
const shortWaitMs = 2_000
interface SegmentOptions {
  deps: ActivityDeps
  sendChanges: SendChanges
  input: SendInput
  billing: Billing
  signal: AbortSignal
}

/** One stretch of sending and settling, and where it ended. */
export class Segment {
  /** What the heartbeat says. */
  progress: Partial<ReportCounts> & { claims: number }
  readonly #options: SegmentOptions
  readonly #deadline: number
  #breakers: BreakerStates

  constructor(options: SegmentOptions) {
    this.#options = options
    this.#breakers = options.input.breakers
    this.#deadline = performance.now() + options.input.seconds * 1000
    this.progress = { claims: options.input.claims }
  }

  async run(): Promise<SendStep> {
    await this.#count()
    for (;;) {
      const sent = await this.#send()
      const settled = this.#stopped ? undefined : await this.#settle()
      if (settled === undefined) return await this.#toStep({ ended: 'stopped', sent })
      await this.#count()
      const isMoreDue = sent.ended === 'timeUp' || settled.settled.staged > 0
      const nextAt = isMoreDue ? Date.now() : earliest(settled.nextLookAt, this.#dueAt(sent))
      if (nextAt === undefined) return await this.#toStep({ ended: endOf(sent), sent })
      if (this.#left <= 0) return await this.#toStep({ ended: 'timeUp', sent })
      const waitMs = nextAt - Date.now()
      if (waitMs > Math.min(shortWaitMs, this.#left)) {
        const ended = sent.ended === 'breaker' ? 'breaker' : 'waiting'
        return await this.#toStep({ ended, sent, nextAt })
      }
      const { signal } = this.#options
      await wait(Math.max(0, waitMs), undefined, { signal }).catch(() => undefined)
    }
  }

  /** When something may be sent again that may not be now. */
  #dueAt({ ended, nextDueAt }: SendResult): number | undefined {
    if (ended === 'breaker') return nextDueAt
    return ended === 'nothingDue' && this.#options.input.rows === undefined ? nextDueAt : undefined
  }

  get #left(): number {
    return this.#deadline - performance.now()
  }

  get #stopped(): boolean {
    return this.#options.signal.aborted
  }

  async #send(): Promise<SendResult> {
    const { deps, input, billing, signal, sendChanges } = this.#options
    const { plan, limits, rows } = input
    const before = this.progress
    const sent = await sendChanges({
      run: plan.run,
      kind: importKinds[plan.kind].change,
      billing,
      limits: limitsOf({ deps, limits }),
      breakers: this.#breakers,
      ...(plan.breakerWaitsMs && { trialWaitsMs: plan.breakerWaitsMs }),
      ...(rows && { rows }),
      timeBoxMs: Math.max(0, Math.min(this.#left, Math.max(longestPassMs, plan.settleMs))),
      signal,
      onProgress: ({ begun, done, failed, unknown }) => {
        this.progress = {
          ...before,
          done: (before.done ?? 0) + done,
          rejected: (before.rejected ?? 0) + failed,
          unknown: (before.unknown ?? 0) + unknown,
          claims: before.claims + begun,
        }
      },
    })
    this.#breakers = sent.breakers
    return sent
  }

  /** Undefined where it was stopped meanwhile. */
  async #settle() {
    const { deps, input, billing, signal } = this.#options
    const { plan } = input
    try {
      return await settleChanges({
        ledger: deps.state.ledger,
        run: plan.run,
        kind: importKinds[plan.kind].change,
        billing,
        settleMs: plan.settleMs,
        // Only resumes have attempts.
        attempts: { most: 1, waitsMs: [0], count: true },
        inFlight: input.limits.concurrency ?? deps.concurrency,
        timeBoxMs: Math.max(longestPassMs, this.#left),
        signal,
      })
    } catch (error) {
      if (this.#stopped) return undefined
      throw error
    }
  }

  async #count(): Promise<void> {
    const { deps, input } = this.#options
    const { run } = input.plan
    const { ledger } = deps.state
    const { counts } = await summarize({ ledger, run })
    this.progress = { ...counts, claims: await ledger.claims({ run }) }
  }

  async #toStep(end: { ended: SendStep['ended']; sent: SendResult; nextAt?: number }): Promise<SendStep> {
    const { ended, sent, nextAt } = end
    const { deps, input } = this.#options
    const { plan, rows = [] } = input
    const { ledger } = deps.state
    const { counts } = await summarize({ ledger, run: plan.run })
    return {
      ended,
      ...(nextAt !== undefined && { nextAt }),
      givenUp: sent.givenUp.length > 0,
      breakers: sent.breakers,
      claims: sent.claims,
      counts,
      canaryFailed: await canaryFailed({ ledger, run: plan.run, rows }),
    }
  }
}

function limitsOf({ deps, limits }: { deps: ActivityDeps; limits: ImportLimits }): Limits {
  const { concurrency = deps.concurrency, maxChanges, maxFailures, maxFailureShare } = limits
  return {
    inFlight: concurrency,
    maxFailureShare: maxFailureShare ?? defaultLimits.maxFailureShare,
    ...(maxChanges !== undefined && { maxChanges }),
    ...(maxFailures !== undefined && { maxFailures }),
  }
}

function endOf({ ended }: SendResult): SendStep['ended'] {
  return ended === 'nothingDue' ? 'finished' : ended
}

const earliest = (...times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
