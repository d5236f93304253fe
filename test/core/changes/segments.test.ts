import { basename, dirname } from 'node:path'
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
  beforeSending,
}: {
  input: Partial<SendInput>
  mayWrite?: () => boolean
  beforeSending?: () => Promise<void>
}) {
  const kind = changeKinds['create-addon']
  const { ledger, run, billing, runFolder, stage } = await startEngine({
    kind,
    sandbox: await startSandbox(),
  })
  await stage(addonRows(3))
  const folder = { dataDir: dirname(runFolder), keepEvery: () => ({ [Symbol.asyncDispose]: async () => {} }) }
  return await sendSegment({
    deps: { state: { ledger }, mayWrite, observer: { onEvent: () => {} } },
    rates: createRunRates(billing),
    attempts: createAttempts(),
    context: {
      owner: {},
      attempt: 0,
      folder,
      signal: new AbortController().signal,
      report: () => {},
      watch: (watched: unknown) => watched,
    },
    plan: { run, folder: basename(runFolder), identity: { workspace, mode: 'live' } },
    work: { run, kind, settleMs: 20, attempts, canarySize: { size: 0 } },
    input: { seconds: 0.5, breakers: {}, claims: 0, limits: defaultLimits, ...input },
    lease: leaseOf(run),
    gap: { staged: 3, onHeld: async () => new Map() },
    beforeSending,
  } as unknown as Parameters<typeof sendSegment>[0])
}

test('a segment sends also if its preparation took all of its time', async () => {
  const seconds = 0.5
  const step = await sendAddons({ input: { seconds }, beforeSending: () => wait(2 * seconds * 1_000) })
  expect(step).toMatchObject({ ended: 'finished', counts: { done: 3 } })
})

test("another command's worker sends nothing of a run, but looks up what was sent, so that a stop ends the run", async () => {
  const mayWrite = () => false
  await expect(sendAddons({ input: {}, mayWrite })).rejects.toThrow('this worker belongs to another command')
  const step = await sendAddons({ input: { lookupsOnly: true }, mayWrite })
  expect(step).toMatchObject({ ended: 'finished', counts: { staged: 3 } })
})
