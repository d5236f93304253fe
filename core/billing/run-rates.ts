import type { Billing } from './client.ts'

interface Rated {
  run: string
  requestsPerSecond?: number | undefined
}

/**
 * All activities of one run in this process share the run's own rate, however many read or write at once. The rate
 * asked for last holds from then on.
 */
export function createRunRates(billing: Billing) {
  const byRun = new Map<string, { share: { requestsPerSecond: number }; billing: Billing }>()
  return {
    of({ run, requestsPerSecond = Infinity }: Rated): Billing {
      let rated = byRun.get(run)
      if (rated === undefined) {
        const share = { requestsPerSecond }
        rated = { share, billing: billing.limited(share) }
        byRun.set(run, rated)
      }
      rated.share.requestsPerSecond = requestsPerSecond
      return rated.billing
    },
    end({ run }: Pick<Rated, 'run'>): void {
      byRun.delete(run)
    },
  }
}

export type RunRates = ReturnType<typeof createRunRates>
