import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SentTooLate, Unauthorized } from '../../../core/billing/errors.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import { addonRows, clientOf, copies, startEngine, startSandbox } from './engine.ts'

const addons = changeKinds['create-addon']

test('a row whose request timed out while it was claimed is staged again, and sent once', async () => {
  const sandbox = await startSandbox()
  const billing = clientOf(sandbox, { timeoutSeconds: 0.2 })
  const engine = await startEngine({ kind: addons, sandbox, billing, limits: { concurrency: 1 } })
  await engine.stage(addonRows(1))
  let claims = 0
  // A disk that hangs once.
  const ledger: Ledger = {
    ...engine.ledger,
    async claim(options) {
      const claimed = await engine.ledger.claim(options)
      if (++claims === 1) await sleep(400)
      return claimed
    },
  }
  expect(await engine.send({ ledger })).toMatchObject({ ended: 'finished', done: 1, unknown: 0 })
  expect(await engine.rows()).toMatchObject([{ state: 'done', claims: 2, sends: 1 }])
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual([1])
})

test('a service that accepts no token ends the round, although each renewed token is another one', async () => {
  const sandbox = await startSandbox()
  let tokens = 0
  const billing = clientOf(sandbox, { token: async () => `token-${++tokens}` })
  const engine = await startEngine({ kind: addons, sandbox, billing, limits: { concurrency: 2 } })
  await engine.stage(addonRows(6))
  await expect(engine.send({ ms: 2_000 })).rejects.toBeInstanceOf(Unauthorized)
  expect(sandbox.control.requests().length).toBeLessThan(9)
  expect((await engine.rows()).every(({ state, sends }) => state === 'staged' && sends === 0)).toBe(true)
})

test('claims that always take too long end the round instead of repeating without end', async () => {
  const sandbox = await startSandbox()
  const late: typeof addons = {
    ...addons,
    send: async ({ options }) => {
      await options.beforeSend?.()
      throw new SentTooLate({ method: 'POST', path: '/addons/', ms: 2_500 })
    },
  }
  const engine = await startEngine({ kind: late, sandbox, limits: { concurrency: 8 } })
  await engine.stage(addonRows(20))
  await expect(engine.send({ ms: 2_000 })).rejects.toBeInstanceOf(SentTooLate)
  expect((await engine.rows()).every(({ state, sends }) => state === 'staged' && sends === 0)).toBe(true)
})
