import { setTimeout as wait } from 'node:timers/promises'
import type { OpenBreaker } from '../../runs/view/breaker.ts'
import type { RunWorkers } from '../../runs/workers.ts'
import type { ReportCounts } from '../../runs/view/counts.ts'
import type { ClaimJournal } from '../claim-journal.ts'
import { hasFailed } from '../outcomes.ts'
import { reconcileChanges, type ReconcileOptions } from '../reconcile/reconcile.ts'
import { summarize } from '../report.ts'
import type { BreakerStates } from './run-breakers.ts'
import { failedCanaries, nextCanary } from './canary.ts'
import { earliest, type RoundOptions, type RoundResult, type SendEnd, sendRound } from './sender.ts'

/** What a run sends and how, from its plan and its limits. */
export type SendWork = Pick<RoundOptions, 'run' | 'kind' | 'limits' | 'breakerWaitsMs'> &
  Pick<ReconcileOptions, 'settleMs' | 'verifyMs' | 'attempts'> & {
    /** Waits up to this long here for what is due soon: a timer of the workflow costs more. Default 2 s. */
    shortWaitMs?: number
  }

/** Input of one sending segment, from the workflow. */
export interface SendInput {
  /** How long to send before reporting back to the workflow. */
  seconds: number
  breakers: BreakerStates
  /** The number of claims in the run's journal as last reported to the workflow. */
  claims: number
  /** Only these rows (the canary) and their follow-ups. */
  rows?: number[]
  /** Sends nothing more and only looks up what was sent. */
  lookupsOnly?: boolean
}

/** Result of one sending segment: counts, row numbers and times only. */
export interface SendStep {
  ended: SendEnd
  /** When the next change is due, by the ledger's clock; undefined if it takes a person or a new segment. */
  nextAt?: number
  /** When the segment ended, by the same clock: Temporal's may differ. Absent in histories of earlier versions. */
  endedAt?: number
  /** Keys of breakers that have given up: only a person closes them. */
  givenUp: string[]
  breakers: BreakerStates
  openBreakers: OpenBreaker[]
  claims: number
  counts: ReportCounts
  /** The first parked rows of which a person may say what became of them; absent if none is parked. */
  parkedRows?: number[]
  /** Breaker keys whose whole canary failed. */
  failedCanaries: string[]
  /** The rows to send first instead, for breaker keys whose canary was held back completely. */
  nextCanary?: number[]
  /** Who sent; absent for a state in the data folder. */
  workers?: RunWorkers
}

type SendForOptions = SendWork &
  Pick<RoundOptions, 'ledger' | 'billing' | 'right' | 'breakers' | 'rows' | 'signal' | 'onDoubled'> & {
    /** Sends nothing more and only looks up what was sent. */
    lookupsOnly?: boolean | undefined
    journal: ClaimJournal
    /** Called after each change with the current counts. */
    onProgress?: (counts: ReportCounts) => void
  }

/** Lost requests are looked up at least this often, also while others are being sent. */
const longestRoundMs = 5_000
const usualShortWaitMs = 2_000

/**
 * Alternates between sending what a run has staged and reconciling what got no answer, for `ms` or until nothing more is
 * due soon. When stopped, it starts nothing more and awaits what is in flight.
 * @throws what `sendRound` and the lookups throw, unless it was stopped
 */
export async function sendFor(ms: number, options: SendForOptions): Promise<SendStep> {
  const { ledger, run, signal, lookupsOnly = false, shortWaitMs = usualShortWaitMs } = options
  const deadline = performance.now() + ms
  const msLeft = () => deadline - performance.now()
  let { breakers } = options
  // What an earlier attempt was sending is looked up, too. A round of sending sees to that itself.
  if (lookupsOnly) await options.right.hold()
  let { counts } = await summarize({ ledger, run })
  options.onProgress?.(counts)
  for (;;) {
    const sent = lookupsOnly ? undefined : await send({ ...options, breakers }, { counts, msLeft: msLeft() })
    breakers = sent?.breakers ?? breakers
    const end = (ended: SendEnd, nextAt?: number) =>
      toStep(options, {
        ended,
        breakers,
        openBreakers: sent?.open ?? [],
        givenUp: sent?.givenUp ?? [],
        ...(nextAt !== undefined && { nextAt }),
      })
    const reconciled = signal.aborted ? undefined : await reconcile(options, msLeft())
    if (reconciled === undefined) return await end('stopped')
    ;({ counts } = await summarize({ ledger, run }))
    options.onProgress?.(counts)
    const isMoreDue = sent !== undefined && (sent.ended === 'timeUp' || reconciled.reconciled.staged > 0)
    const nextAt = isMoreDue ? ledger.now() : earliest(reconciled.nextLookupAt, sent?.nextDueAt)
    if (nextAt === undefined) return await end(sent?.ended ?? 'finished')
    if (msLeft() <= 0) return await end('timeUp')
    const waitMs = nextAt - ledger.now()
    if (waitMs > Math.min(shortWaitMs, msLeft()))
      return await end(sent?.ended === 'breaker' ? 'breaker' : 'waiting', nextAt)
    await wait(Math.max(0, waitMs), undefined, { signal }).catch(() => undefined)
  }
}

async function send(
  options: SendForOptions,
  { counts, msLeft }: { counts: ReportCounts; msLeft: number },
): Promise<RoundResult> {
  const { kind, settleMs, onProgress } = options
  // Breakers must soon learn of failures that only a lookup shows.
  const roundMs = kind.confirmedByLookup === true ? longestRoundMs : Math.max(longestRoundMs, settleMs)
  return await sendRound({
    ...options,
    rows: options.rows && (await withoutFailed(options, options.rows)),
    ms: Math.max(0, Math.min(msLeft, roundMs)),
    onProgress: ({ done, failed, unknown }) => {
      // Changes confirmed by a lookup are not rejected yet, whatever the answer looked like.
      const rejected = kind.confirmedByLookup === true ? 0 : failed
      onProgress?.({
        ...counts,
        staged: Math.max(0, counts.staged - done - failed - unknown),
        done: counts.done + done,
        rejected: counts.rejected + rejected,
        unknown: counts.unknown + unknown + failed - rejected,
      })
    },
  })
}

/** Failed canary changes are not tried again before the canary has a result. */
async function withoutFailed({ ledger, run }: SendForOptions, rows: readonly number[]): Promise<number[]> {
  const changes = await Promise.all(rows.map((row) => ledger.row({ run, row })))
  return changes.flatMap((change) => (change === undefined || hasFailed(change) ? [] : [change.row]))
}

/** Undefined if it was stopped in the meantime. */
async function reconcile(options: SendForOptions, msLeft: number) {
  const { limits, signal, onProgress: _, ...rest } = options
  try {
    const timeBoxMs = Math.max(longestRoundMs, msLeft)
    return await reconcileChanges({ ...rest, inFlight: limits.inFlight, timeBoxMs, signal })
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

async function toStep(
  { ledger, run, kind, journal, rows = [] }: SendForOptions,
  end: Pick<SendStep, 'ended' | 'nextAt' | 'givenUp' | 'breakers' | 'openBreakers'>,
): Promise<SendStep> {
  const { counts } = await summarize({ ledger, run })
  const next = end.ended === 'finished' ? await nextCanary({ ledger, run, kind, rows }) : []
  return {
    ...end,
    endedAt: ledger.now(),
    claims: journal.recorded,
    counts,
    ...(counts.parked > 0 && { parkedRows: await firstInDoubt({ ledger, run, kind }) }),
    failedCanaries: await failedCanaries({ ledger, run, rows }),
    ...(next.length > 0 && { nextCanary: next }),
  }
}

/** Enough for a person to work through at once; the report has all of them. */
const maxParkedRows = 20

async function firstInDoubt({
  ledger,
  run,
  kind,
}: Pick<SendForOptions, 'ledger' | 'run' | 'kind'>): Promise<number[]> {
  const rows: number[] = []
  for await (const row of ledger.rows({ run, state: 'parked' })) {
    if (kind.isInDoubt?.(row) === false) continue
    rows.push(row.row)
    if (rows.length === maxParkedRows) break
  }
  return rows
}
