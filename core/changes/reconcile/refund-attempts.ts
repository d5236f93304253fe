import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { parseBody } from '../body.ts'
import type { BreakerStates } from '../send/breakers.ts'
import type { Outcome } from '../outcomes.ts'

/** So many successes in a row are not of the incident any more. */
const calm = 10
/** More than come back from looks between two passes. */
const mostClosed = 5_000

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
    let successes = 0
    for (const row of await ledger.lastClosed({ run, lane, since: clearedAt, limit: mostClosed })) {
      successes = row.state === 'done' ? successes + 1 : 0
      if (successes === calm) break
      await forgive(ledger, row)
    }
  }
}

async function forgive(ledger: Ledger, row: LedgerRow): Promise<void> {
  const { id, state, outcome, attempts, sends } = row
  if (attempts <= usedBefore(row)) return
  const patch = { attempts: attempts - 1 }
  if (state === 'staged' && (outcome === 'fellBack' || outcome === 'noEffect'))
    await ledger.move({ id, from: ['staged'], sends, patch })
  else if (state === 'parked' && outcome === 'attemptsUsedUp')
    await ledger.move({ id, from: ['parked'], sends, patch: { ...again, ...patch } })
}

/** What earlier runs used up is not of this incident, and the canary, which counts nothing, has added nothing to it. */
function usedBefore(row: LedgerRow): number {
  const snapshot = parseBody(row)['snapshot'] as { attempts?: unknown } | undefined
  return Number(snapshot?.attempts ?? 0)
}

const again = { state: 'staged', outcome: 'fellBack' satisfies Outcome, holdsKey: true } as const
