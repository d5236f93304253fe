import type { Pass, SendOptions, SendResult } from './pass.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { Breakers } from './breakers.ts'
import { Sender, totalsOf } from './sender.ts'

/**
 * Sends what a run has staged, in the order of its rows, several at a time, each claimed on the disk before its
 * request leaves. What an earlier pass was sending when its process ended becomes unknown; nothing is sent blindly
 * twice. Of one run there is one pass at a time (`Attempts`).
 *
 * @throws {Error} what must stop a run: Unauthorized, Forbidden, WrongModeError, Unreachable after eight tries, the
 * errors of the state; in all cases after what was on its way has ended
 */
export async function sendChanges({
  now = Date.now,
  ...options
}: SendOptions & { ledger: Ledger; now?: () => number }): Promise<SendResult> {
  const pass: Pass = { ...options, now, stop: options.signal ?? new AbortController().signal }
  const { ledger, run } = pass
  const patch = { state: 'unknown', outcome: 'interrupted', unknownSince: now() } as const
  await ledger.moveAll({ run, from: 'sending', patch })
  const breakers = await Breakers.load({
    ledger,
    run,
    states: pass.breakers,
    maxFailureShare: () => pass.limits.maxFailureShare,
    ...(pass.trialWaitsMs && { trialWaitsMs: pass.trialWaitsMs }),
  })
  const sender = new Sender({ pass, breakers, totals: await totalsOf({ ledger, run }) })
  const ended = await sender.run()
  // Other lanes may have something that is due later, while this one's breaker is open.
  const exceptLanes = ended === 'breaker' ? breakers.closedLanes(now()) : []
  const times = [
    await ledger.nextDue({ run, exceptLanes }),
    ...(ended === 'breaker' ? [breakers.nextTrialAt] : []),
  ]
  const known = times.filter((time) => time !== undefined)
  return {
    ...sender.progress,
    ended,
    breakers: breakers.states,
    givenUp: breakers.givenUp,
    nextDueAt: known.length === 0 ? undefined : Math.min(...known),
  }
}
