import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SentTooLate, Unauthorized } from '../../../core/billing/errors.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import { addonRows, clientOf, copies, startEngine, startSandbox } from './engine.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { showTestMode } from '../../../core/changes/send/probe-mode.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'

const addons = changeKinds['create-addon']

test('a row whose request timed out while it was claimed is staged again, and sent once', async () => {
  const sandbox = await startSandbox()
  const billing = clientOf(sandbox, { timeoutSeconds: 0.2 })
  const engine = await startEngine({ kind: addons, sandbox, billing, concurrency: 1 })
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
  const engine = await startEngine({ kind: addons, sandbox, billing, concurrency: 2 })
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
  const engine = await startEngine({ kind: late, sandbox, concurrency: 8 })
  await engine.stage(addonRows(20))
  await expect(engine.send({ ms: 2_000 })).rejects.toBeInstanceOf(SentTooLate)
  expect((await engine.rows()).every(({ state, sends }) => state === 'staged' && sends === 0)).toBe(true)
})

/** A resume whose turn comes a minute after its look, for as many checks as are said. */
async function resumeLate({ lateLooks, meanwhile }: { lateLooks: number; meanwhile: object }) {
  const counts = { customers: 1, subscriptions: 1, plans: 1 }
  const sandbox = await startSandbox({ counts, needsAttention: 1 })
  const id = String(sandbox.control.ids({ resource: 'subscriptions' })[0])
  const set = (fields: Record<string, unknown>) =>
    sandbox.control.update({ resource: 'subscriptions', id, fields })
  set({ status: 'needs_attention', needs_attention_reason: 'gateway_issue', cancelled: null })
  const { customer } = sandbox.control.get({ resource: 'subscriptions', id }) as { customer: string }
  let checks = 0
  let aheadMs = 0
  const kind: ChangeKind = {
    ...resumeSubscription,
    send: async (request) => {
      checks += 1
      if (checks <= lateLooks) {
        set({ ...meanwhile })
        aheadMs += 60_000
      }
      return await resumeSubscription.send(request)
    },
  }
  const { send, stage, rows, ledger } = await startEngine({ kind, sandbox })
  await stage([{ row: 1, body: { id, customer } }])
  await send({ ledger: { ...ledger, now: () => Date.now() + aheadMs }, ms: 10_000 })
  const resumed = sandbox.control.effects().filter(({ effect }) => effect === 'resume')
  return { checks, resumed: resumed.length, row: (await rows())[0] }
}

test('a resume that is delayed after its check is checked again, and not sent if it was cancelled in the meantime', async () => {
  const { checks, resumed, row } = await resumeLate({ lateLooks: 1, meanwhile: { status: 'cancelled' } })
  expect(resumed).toBe(0)
  expect(row).toMatchObject({ state: 'dropped', outcome: 'gone', sends: 0 })
  expect(checks).toBe(1)
})

test('a resume that is always delayed is sent after its third check', async () => {
  const { checks, resumed, row } = await resumeLate({ lateLooks: Infinity, meanwhile: {} })
  expect({ checks, resumed }).toEqual({ checks: 3, resumed: 1 })
  expect(row).toMatchObject({ state: 'unknown', outcome: 'resumed', sends: 1 })
})

async function probe(options: SandboxOptions) {
  const sandbox = await startSandbox(options)
  await showTestMode({ billing: clientOf(sandbox, { testMode: true }) })
}

const none = { customers: 0, subscriptions: 0, retentions: 0 }

test('a record of test data shows that the header is honoured, in whichever list it lies', async () => {
  await probe({ testCounts: { ...none, customers: 1 } })
  await probe({ testCounts: { ...none, retentions: 1 } })
})

test('live data, or none, shows nothing: then nothing may be written', async () => {
  await expect(probe({ counts: { customers: 3 }, honoursTestMode: false })).rejects.toThrow('live customers')
  await expect(probe({ testCounts: none })).rejects.toMatchObject({ name: 'ModeNotShownError' })
})
