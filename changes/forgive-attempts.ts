import type { Ledger } from '../state/ledger.ts'
import { windowSize } from './breaker.ts'
import type { BreakerStates } from './breakers.ts'
import type { Outcome } from './outcomes.ts'

/**
 * Gives back the attempts that fell back while a lane's breaker was about to open: what opens it is an incident, and
 * no fault of each subscription. To be called with the states before and after each pass.
 */
export async function forgiveAttempts({
  ledger,
  run,
  before,
  after,
}: {
  ledger: Ledger
  run: string
  before: BreakerStates
  after: BreakerStates
}): Promise<void> {
  for (const [lane, { openedAt }] of Object.entries(after)) {
    const { clearedAt = 0, openedAt: openBefore } = before[lane] ?? {}
    if (openedAt === undefined || openBefore !== undefined) continue
    const closed = await ledger.lastClosed({ run, lane, since: clearedAt, limit: windowSize })
    for (const { id, state, outcome, attempts, sends } of closed) {
      if (attempts === 0) continue
      if (state === 'staged' && (outcome === 'fellBack' || outcome === 'noEffect'))
        await ledger.move({ id, from: ['staged'], sends, patch: { attempts: attempts - 1 } })
      else if (state === 'parked' && outcome === 'attemptsUsedUp')
        await ledger.move({ id, from: ['parked'], sends, patch: { ...again, attempts: attempts - 1 } })
    }
  }
}

const again = { state: 'staged', outcome: 'fellBack' satisfies Outcome, holdsKey: true } as const
