import type { Billing } from './client.ts'
import type { Share } from './fleet-rate.ts'

interface RunRate {
  run: string
  requestsPerSecond?: number | undefined
}

/**
 * Rate limits by run: all activities of a run in this process share the run's rate. The rate requested last applies to
 * all of them.
 */
export function createRunRates(billing: Billing) {
  const byRun = new Map<string, { share: Share; billing: Billing }>()
  function ratedOf(run: string) {
    let rated = byRun.get(run)
    if (rated === undefined) {
      const share = { requestsPerSecond: Infinity, run }
      rated = { share, billing: billing.limited(share) }
      byRun.set(run, rated)
    }
    return rated
  }
  return {
    forRun({ run, requestsPerSecond = Infinity }: RunRate): Billing {
      const rated = ratedOf(run)
      rated.share.requestsPerSecond = requestsPerSecond
      return rated.billing
    },
    /** At the rate that was requested last: for a step beside the one that has the run's limits. */
    ofRun: ({ run }: Pick<RunRate, 'run'>): Billing => ratedOf(run).billing,
    end({ run }: Pick<RunRate, 'run'>): void {
      byRun.delete(run)
    },
  }
}

export type RunRates = ReturnType<typeof createRunRates>
