import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sendSegment } from '../../../activities/changes/send-segment.ts'
import { createRunRates } from '../../../core/billing/run-rates.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { defaultLimits } from '../../../core/changes/send/sending.ts'
import type { SendInput } from '../../../core/changes/send/sending.ts'
import { createAttempts } from '../../../core/runs/sending-attempts.ts'
import { leaseOf } from '../state/sender-of.ts'
import { addonRows, attempts, startEngine, startSandbox, workspace } from './engine.ts'

/** A segment of a run of three addons. */
async function sendAddons({
  input,
  mayWrite = () => true,
  preparationMs = 0,
}: {
  input: Partial<SendInput>
  mayWrite?: () => boolean
  preparationMs?: number
}) {
  const kind = changeKinds['create-addon']
  const { ledger, run, billing, stage } = await startEngine({
    kind,
    sandbox: await startSandbox(),
  })
  await stage(addonRows(3))
  const known: typeof ledger.known = async (of) => {
    await wait(preparationMs)
    return await ledger.known(of)
  }
  return await sendSegment({
    deps: {
      state: { ledger: { ...ledger, known } },
      shared: { isShared: false },
      mayWrite,
      observer: { onEvent: () => {} },
    },
    rates: createRunRates(billing),
    attempts: createAttempts(),
    context: {
      owner: {},
      attempt: 0,
      signal: new AbortController().signal,
      report: () => {},
      watch: (watched: unknown) => watched,
    },
    plan: { run, identity: { workspace, mode: 'live' } },
    work: { run, kind, settleMs: 20, attempts, canarySize: { size: 0 } },
    input: { seconds: 0.5, breakers: {}, claims: 0, limits: defaultLimits, ...input },
    lease: leaseOf(run),
    staged: 3,
  } as unknown as Parameters<typeof sendSegment>[0])
}

test('a segment sends also if its preparation took all of its time', async () => {
  const seconds = 0.5
  const step = await sendAddons({ input: { seconds }, preparationMs: 2 * seconds * 1_000 })
  expect(step).toMatchObject({ ended: 'finished', counts: { done: 3 } })
})

test("another command's worker sends nothing of a run, but looks up what was sent, so that a stop ends the run", async () => {
  const mayWrite = () => false
  await expect(sendAddons({ input: {}, mayWrite })).rejects.toThrow('this worker belongs to another command')
  const step = await sendAddons({ input: { lookupsOnly: true }, mayWrite })
  expect(step).toMatchObject({ ended: 'finished', counts: { staged: 3 } })
})
