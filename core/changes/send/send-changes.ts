import type { Pass, SendOptions, SendResult } from './pass.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { Breakers } from './breakers.ts'
import { Sender, totalsOf } from './sender.ts'

/**
 * Sends what a run has staged, in the order of its rows, several at a time, each claimed on the disk before its
 * request leaves. What an earlier attempt was sending when it ended becomes unknown; nothing is sent blindly twice.
 *
 * A second call for the same run first ends and awaits the one before. Throws what must stop a run: Unauthorized,
 * Forbidden, WrongModeError, Unreachable after eight tries, the errors of the state; in all cases after what was
 * on its way has ended.
 */
export type SendChanges = (options: SendOptions) => Promise<SendResult>

/** One for a process: it knows which runs are being sent. */
export function createSendChanges({
  ledger,
  now = Date.now,
}: {
  ledger: Ledger
  now?: () => number
}): SendChanges {
  const active = new Map<string, { stop: AbortController; ended: Promise<unknown> }>()
  return async (options) => {
    const stop = new AbortController()
    const before = active.get(options.run)
    before?.stop.abort(new Error('a new attempt of this run takes over'))
    const ended = (async () => {
      await before?.ended
      const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
      return await sendPass({ ...options, ledger, now, stop: signal })
    })()
    const mine = { stop, ended: ended.catch(() => {}) }
    active.set(options.run, mine)
    try {
      return await ended
    } finally {
      if (active.get(options.run) === mine) active.delete(options.run)
    }
  }
}

async function sendPass(pass: Pass): Promise<SendResult> {
  const { ledger, run, now } = pass
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
