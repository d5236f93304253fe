import { expect, test } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { LockLostError } from '../../../core/state/errors.ts'
import { retentionRows, startEngine, startSandbox } from './engine.ts'

const kind = changeKinds['create-retention']
const posts = (sandbox: Awaited<ReturnType<typeof startSandbox>>) =>
  sandbox.control.requests().filter(({ method }) => method === 'POST').length

test('a sender whose folder is no longer its own sends nothing more, and the run fails with the reason', async () => {
  const sandbox = await startSandbox()
  let held = true
  const engine = await startEngine({ kind, sandbox, isHeld: () => held, limits: { concurrency: 1 } })
  await engine.stage(retentionRows(4))
  await engine.send({ rows: [1] })
  held = false
  await expect(engine.send()).rejects.toThrow(LockLostError)
  expect(posts(sandbox)).toBe(1)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'staged', 'staged', 'staged'])
})

test('a sender that lost its folder while it wrote the claim does not send it; the next one looks up its outcome', async () => {
  const sandbox = await startSandbox()
  let checks = 0
  const engine = await startEngine({ kind, sandbox, isHeld: () => ++checks < 2, limits: { concurrency: 1 } })
  await engine.stage(retentionRows(1))
  await expect(engine.send()).rejects.toThrow('worker.lock was removed or replaced')
  expect(posts(sandbox)).toBe(0)
  expect(await engine.rows()).toMatchObject([{ state: 'sending', sends: 1 }])
})
