import { expect, test } from 'vitest'
import { endSending } from '../../../activities/changes/end-sending.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { createSendRight } from '../../../core/changes/send/send-right.ts'
import { createAttempts } from '../../../core/runs/sending-attempts.ts'
import { SupersededError } from '../../../core/state/errors.ts'
import { addonRows, startEngine, startSandbox } from './engine.ts'

const kind = changeKinds['create-addon']

test('an attempt that was superseded between two rounds does not take the right back', async () => {
  const sandbox = await startSandbox()
  const engine = await startEngine({ kind, sandbox })
  const { ledger, run } = engine
  await engine.stage(addonRows(3))
  const [first, second] = [createSendRight({ ledger, run }), createSendRight({ ledger, run })]
  await engine.send({ right: first, rows: [1] })
  await second.hold()
  await expect(engine.send({ right: first })).rejects.toBeInstanceOf(SupersededError)
  await expect(engine.send({ right: first })).rejects.toBeInstanceOf(SupersededError)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'staged', 'staged'])
  expect(await engine.send({ right: second })).toMatchObject({ ended: 'finished', done: 2 })
})

test('an attempt that still has the right finds what it left behind itself', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, run } = engine
  await engine.stage(addonRows(1))
  const right = createSendRight({ ledger, run })
  const [row] = await engine.rows()
  await ledger.claim({ sender: await right.hold(), id: row?.id ?? 0, sends: 0, at: 1 })
  await right.hold()
  expect(await engine.rows()).toMatchObject([{ state: 'unknown', outcome: 'interrupted' }])
})

test('what ends the sending of a run takes the right from an attempt on another machine', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const { ledger, run } = engine
  await engine.stage(addonRows(2))
  const right = createSendRight({ ledger, run })
  await engine.send({ right, rows: [1] })
  await endSending({ ledger: { ...ledger, isShared: true }, attempts: createAttempts(), run })
  await expect(engine.send({ right })).rejects.toBeInstanceOf(SupersededError)
})
