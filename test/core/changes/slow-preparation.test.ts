import { basename, dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sendSegment } from '../../../activities/changes/send-segment.ts'
import { createRunRates } from '../../../core/billing/run-rates.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { defaultLimits } from '../../../core/changes/send/limits.ts'
import { createAttempts } from '../../../core/runs/sending-attempts.ts'
import { addonRows, attempts, startEngine, startSandbox, workspace } from './engine.ts'

test('a segment sends also if its preparation took all of its time', async () => {
  const kind = changeKinds['create-addon']
  const { ledger, run, billing, runFolder, stage } = await startEngine({
    kind,
    sandbox: await startSandbox(),
  })
  await stage(addonRows(3))
  const seconds = 0.5
  const folder = { dataDir: dirname(runFolder), keepEvery: () => ({ [Symbol.asyncDispose]: async () => {} }) }
  const step = await sendSegment({
    deps: { state: { ledger }, mayWrite: () => true, observer: { onEvent: () => {} } },
    rates: createRunRates(billing),
    attempts: createAttempts(),
    context: { owner: {}, folder, signal: new AbortController().signal, report: () => {} },
    plan: { run, folder: basename(runFolder), identity: { workspace, mode: 'live' } },
    work: { run, kind, settleMs: 20, attempts, limits: defaultLimits },
    input: { seconds, breakers: {}, claims: 0 },
    gap: { staged: 3, onHeld: async () => new Map() },
    beforeSending: () => wait(2 * seconds * 1_000),
  } as unknown as Parameters<typeof sendSegment>[0])
  expect(step).toMatchObject({ ended: 'finished', counts: { done: 3 } })
})
