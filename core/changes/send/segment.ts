import { setTimeout as wait } from 'node:timers/promises'
import type { Billing } from '../../billing/client.ts'
import type { BreakerStates } from './breakers.ts'
import { failedCanaries, nextCanary } from './canary.ts'
import type { ChangeKind } from '../change-kind.ts'
import type { ClaimJournal } from '../claim-journal.ts'
import type { Limits } from './limits.ts'
import { hasFailed } from '../outcomes.ts'
import { type ReportCounts } from '../../runs/counts.ts'
import { summarize } from '../report.ts'
import type { SendResult } from './pass.ts'
import { sendChanges } from './send-changes.ts'
import { type SettleOptions, settleChanges } from '../reconcile/reconcile.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'

/** What a run of changes sends, and how. */
export interface ChangeWork extends Pick<SettleOptions, 'settleMs' | 'verifyMs' | 'attempts'> {
  run: string
  kind: ChangeKind
  limits: Limits
  breakerWaitsMs?: readonly number[]
  /** What is due within so long is waited for in the segment: a timer of the workflow costs more. Default 2 s. */
  shortWaitMs?: number
}

/** What of a run one segment hands on to the next. */
export interface SegmentInput {
  /** How long to send before the workflow is told how far it got. */
  seconds: number
  breakers: BreakerStates
  /** How many claims the run's journal had when the run was last told. */
  claims: number
  /** Only these, and all that becomes of them: the canary. */
  rows?: number[]
  /** Nothing more is sent: only what was sent is looked up. */
  looksOnly?: boolean
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
  /** Lanes whose breaker tries no more: only a person opens them again. */
  givenUp: string[]
  breakers: BreakerStates
  claims: number
  counts: ReportCounts
  /** The first rows that wait for a person; absent where there are none. */
  parkedRows?: number[]
  /** Lanes of which all of the canary failed. */
  failedCanaries: string[]
  /** Of lanes of whose canary nothing was sent: what goes first instead. */
  nextCanary?: number[]
}

/** As many as a person takes in hand at once; all of them are in the report. */
const mostParkedRows = 20

/** A lost request is looked for while the others are still being sent: at least this often. */
const longestPassMs = 5_000
const usualShortWaitMs = 2_000

interface SegmentOptions {
  ledger: Ledger
  journal: ClaimJournal
  work: ChangeWork
  input: SegmentInput
  billing: Billing
  signal: AbortSignal
}

/** One stretch of sending and settling, and where it ended. */
export class Segment {
  readonly #options: SegmentOptions
  readonly #deadline: number
  #breakers: BreakerStates
  #counts: Partial<ReportCounts> = {}

  constructor(options: SegmentOptions) {
    this.#options = options
    this.#breakers = options.input.breakers
    this.#deadline = performance.now() + options.input.seconds * 1000
  }

  /** For the heartbeat: only claims that are on the disk, because more would look like a journal that was put back. */
  get progress(): Partial<ReportCounts> & { claims: number } {
    return { ...this.#counts, claims: this.#options.journal.recorded }
  }

  async run(): Promise<SendStep> {
    await this.#count()
    for (;;) {
      const sent = this.#options.input.looksOnly === true ? undefined : await this.#send()
      const settled = this.#stopped ? undefined : await this.#settle()
      if (settled === undefined) return await this.#toStep({ ended: 'stopped', sent })
      await this.#count()
      const isMoreDue = sent !== undefined && (sent.ended === 'timeUp' || settled.settled.staged > 0)
      const nextAt = isMoreDue ? Date.now() : earliest(settled.nextLookAt, sent && this.#dueAt(sent))
      if (nextAt === undefined) return await this.#toStep({ ended: endOf(sent), sent })
      if (this.#left <= 0) return await this.#toStep({ ended: 'timeUp', sent })
      const waitMs = nextAt - Date.now()
      const { shortWaitMs = usualShortWaitMs } = this.#options.work
      if (waitMs > Math.min(shortWaitMs, this.#left)) {
        const ended = sent?.ended === 'breaker' ? 'breaker' : 'waiting'
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
    const { work, input, billing, journal, signal, ledger } = this.#options
    const { run, kind, limits, breakerWaitsMs } = work
    const before = this.#counts
    const rows = input.rows && (await this.#withoutFailed(input.rows))
    // What a look settles says only then whether it did harm: the breaker must not hear of it late.
    const passMs = kind.settledByLook === true ? longestPassMs : Math.max(longestPassMs, work.settleMs)
    const sent = await sendChanges({
      ledger,
      run,
      kind,
      billing,
      journal,
      limits,
      breakers: this.#breakers,
      ...(breakerWaitsMs && { trialWaitsMs: breakerWaitsMs }),
      ...(rows && { rows }),
      timeBoxMs: Math.max(0, Math.min(this.#left, passMs)),
      signal,
      onProgress: ({ done, failed, unknown }) => {
        // What a look settles is not refused, whatever its answer looked like.
        const rejected = kind.settledByLook === true ? 0 : failed
        this.#counts = {
          ...before,
          staged: Math.max(0, (before.staged ?? 0) - done - failed - unknown),
          done: (before.done ?? 0) + done,
          rejected: (before.rejected ?? 0) + rejected,
          unknown: (before.unknown ?? 0) + unknown + failed - rejected,
        }
      },
    })
    this.#breakers = sent.breakers
    return sent
  }

  /** What failed in a canary is not tried again before the canary has told. */
  async #withoutFailed(rows: readonly number[]): Promise<number[]> {
    const { ledger, work } = this.#options
    const changes = await Promise.all(rows.map((row) => ledger.row({ run: work.run, row })))
    return changes.flatMap((change) => (change === undefined || hasFailed(change) ? [] : [change.row]))
  }

  /** Undefined where it was stopped meanwhile. */
  async #settle() {
    const { ledger, work, billing, signal } = this.#options
    try {
      return await settleChanges({
        ledger,
        ...work,
        billing,
        inFlight: work.limits.inFlight,
        timeBoxMs: Math.max(longestPassMs, this.#left),
        signal,
      })
    } catch (error) {
      if (this.#stopped) return undefined
      throw error
    }
  }

  async #count(): Promise<void> {
    const { ledger, work } = this.#options
    const { counts } = await summarize({ ledger, run: work.run })
    this.#counts = counts
  }

  async #toStep(end: {
    ended: SendStep['ended']
    sent: SendResult | undefined
    nextAt?: number
  }): Promise<SendStep> {
    const { ended, sent, nextAt } = end
    const { ledger, journal, work, input } = this.#options
    const { run, kind } = work
    const { rows = [] } = input
    const { counts } = await summarize({ ledger, run })
    const next = ended === 'finished' ? await nextCanary({ ledger, run, kind, rows }) : []
    return {
      ended,
      ...(nextAt !== undefined && { nextAt }),
      givenUp: sent?.givenUp ?? [],
      breakers: this.#breakers,
      claims: journal.recorded,
      counts,
      ...(counts.parked > 0 && { parkedRows: await firstParked({ ledger, run }) }),
      failedCanaries: await failedCanaries({ ledger, run, rows }),
      ...(next.length > 0 && { nextCanary: next }),
    }
  }
}

async function firstParked({ ledger, run }: { ledger: Ledger; run: string }): Promise<number[]> {
  const rows: number[] = []
  for await (const { row } of ledger.rows({ run, state: 'parked' })) {
    rows.push(row)
    if (rows.length === mostParkedRows) break
  }
  return rows
}

function endOf(sent: SendResult | undefined): SendStep['ended'] {
  return sent === undefined || sent.ended === 'nothingDue' ? 'finished' : sent.ended
}

const earliest = (...times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}
