import type { ReportCounts } from '../../runs/view/counts.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { ChangeKind } from '../change-kind.ts'
import { noCounts, summarize, totalsOf } from '../report.ts'
import type { SendResult } from './send-one.ts'

/** A change that the service has done more than once, with the ids it has there. */
export interface Doubled {
  row: number
  ids: readonly string[]
}

export interface TallyOptions {
  ledger: Ledger
  run: string
  kind: ChangeKind
  /** Called after each change with the current counts. */
  onProgress?: (counts: ReportCounts) => void
  /** Called when an answer shows that the service has done a change more than once. */
  onDoubled?: ((doubled: Doubled) => void) | undefined
}

const maxNotLeft = 8
const longestPauseMs = 30_000
const nothing = { begun: 0, done: 0, failed: 0, unknown: 0 }

/** What the sending of a run has learned since the ledger was counted: for its bounds, its progress and its end. */
export class SendTally {
  readonly #options: TallyOptions
  #counts: ReportCounts = noCounts
  #notLeft = 0
  /** What this round of sending has done so far. */
  round = { ...nothing }
  /** Changes of the whole run that were tried, and those of them that have failed. */
  totals = { tried: 0, failed: 0 }
  /** No request can leave until then, by `performance.now()`. */
  pausedUntil = 0
  /** Why the sending must end. */
  error: unknown

  constructor(options: TallyOptions) {
    this.#options = options
  }

  async readCounts(): Promise<void> {
    this.#counts = (await summarize(this.#options)).counts
    this.round = { ...nothing }
    this.#showProgress()
  }

  async beginRound(): Promise<void> {
    this.totals = await totalsOf(this.#options)
    this.round = { ...nothing }
  }

  begin({ sends }: LedgerRow): void {
    this.round.begun += 1
    if (sends === 0) this.totals.tried += 1
  }

  count(row: LedgerRow, { event, claimed, refused = false, error, notLeft, doubled }: SendResult): void {
    if (doubled !== undefined) this.#options.onDoubled?.({ row: row.row, ids: doubled })
    if (event === 'success') this.round.done += 1
    if (event === 'failure') {
      this.round.failed += 1
      this.totals.failed += 1
    }
    if (event === 'fault' || event === 'pending') this.round.unknown += 1
    if (event === 'notSent' && row.sends === 0 && !refused) this.totals.tried -= 1
    if (notLeft !== undefined) this.#notLeft += 1
    else if (claimed) this.#notLeft = 0
    // 1, 2, 4 ... 30 s.
    if (this.#notLeft > 0)
      this.pausedUntil = performance.now() + Math.min(longestPauseMs, 500 * 2 ** this.#notLeft)
    this.error ??= error
    if (this.#notLeft >= maxNotLeft) this.error ??= notLeft
    this.#showProgress()
  }

  /** The counts of the ledger before this round, and what the round has done since. */
  #showProgress(): void {
    const counts = this.#counts
    const { done, failed, unknown } = this.round
    // Changes confirmed by a lookup are not rejected yet, whatever the answer looked like.
    const rejected = this.#options.kind.confirmedByLookup === true ? 0 : failed
    this.#options.onProgress?.({
      ...counts,
      staged: Math.max(0, counts.staged - done - failed - unknown),
      done: counts.done + done,
      rejected: counts.rejected + rejected,
      unknown: counts.unknown + unknown + failed - rejected,
    })
  }
}
