import type { ReportCounts } from '../../runs/view/counts.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { hasFailed } from '../outcomes.ts'
import { noCounts, placeOf, summarize } from '../report.ts'

/** The counts of a run, read from the ledger and kept up with each row that is sent or looked up. */
export class Tally {
  counts: ReportCounts = noCounts
  /** Changes of the whole run that were tried, those in flight included, and those of them that have failed. */
  tried = 0
  failed = 0

  static async load({ ledger, run }: { ledger: Ledger; run: string }): Promise<Tally> {
    const tally = new Tally()
    tally.counts = (await summarize({ ledger, run })).counts
    for (const { state, outcome, tried, refused, failing } of await ledger.counts({ run })) {
      tally.tried += tried + refused
      tally.failed += hasFailed({ state, outcome }) ? tried : failing
    }
    return tally
  }

  begin(row: LedgerRow): void {
    this.tried += isTried(row) ? 0 : 1
  }

  /** `wasBegun`: it counts as tried since `begin`. */
  end(before: LedgerRow, now: LedgerRow, { wasBegun }: { wasBegun: boolean }): void {
    this.tried += Number(isTried(now)) - Number(wasBegun || isTried(before))
    this.failed += Number(countsAsFailed(now)) - Number(countsAsFailed(before))
    const [from, to] = [placeOf(before), placeOf(now)]
    if (from !== to)
      this.counts = { ...this.counts, [from]: this.counts[from] - 1, [to]: this.counts[to] + 1 }
  }
}

/** A refused request had no effect, and was tried all the same. */
const isTried = ({ sends, answeredAt }: LedgerRow): boolean => sends > 0 || answeredAt !== null

/** A change whose answer shows that it failed counts before a lookup confirms it. */
const countsAsFailed = (row: LedgerRow): boolean =>
  row.sends > 0 &&
  (hasFailed(row) ||
    (row.state === 'unknown' && row.event === 'failure' && (row.eventAt ?? 0) >= (row.sentAt ?? 0)))
