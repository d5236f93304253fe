import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SentTooLate, Unauthorized } from '../../../core/billing/errors.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import { addonRows, clientOf, copies, oneBroken, resumeRows, startRun, startSandbox } from './engine.ts'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { showTestMode } from '../../../core/changes/send/probe-mode.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'

const addons = changeKinds['create-addon']

test('a row whose request timed out while it was claimed is staged again, and sent once', async () => {
  const billing = (sandbox: Sandbox) => clientOf(sandbox, { timeoutSeconds: 1 })
  const { sandbox, engine } = await startRun(addons, addonRows(1), { billing, concurrency: 1 })
  let claims = 0
  // A disk that hangs once.
  const ledger: Ledger = {
    ...engine.ledger,
    async claim(options) {
      const claimed = await engine.ledger.claim(options)
      if (++claims === 1) await sleep(1_200)
      return claimed
    },
  }
  expect(await engine.send({ ledger })).toMatchObject({ ended: 'finished', done: 1, unknown: 0 })
  expect(claims).toBeGreaterThan(1)
  expect(await engine.rows()).toMatchObject([{ state: 'done', claims, sends: 1 }])
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual([1])
})

test('a service that accepts no token ends the round, although each renewed token is another one', async () => {
  let tokens = 0
  const billing = (sandbox: Sandbox) => clientOf(sandbox, { token: async () => `token-${++tokens}` })
  const { sandbox, engine } = await startRun(addons, addonRows(6), { billing, concurrency: 2 })
  await expect(engine.send({ ms: 2_000 })).rejects.toBeInstanceOf(Unauthorized)
  expect(sandbox.control.requests().length).toBeLessThan(9)
  expect((await engine.rows()).every(({ state, sends }) => state === 'staged' && sends === 0)).toBe(true)
})

test('claims that always take too long end the round instead of repeating without end', async () => {
  const late: typeof addons = {
    ...addons,
    send: async ({ options }) => {
      await options.beforeSend?.()
      throw new SentTooLate({ method: 'POST', path: '/addons/', ms: 2_500 })
    },
  }
  const { engine } = await startRun(late, addonRows(20), { concurrency: 8 })
  await expect(engine.send({ ms: 2_000 })).rejects.toBeInstanceOf(SentTooLate)
  expect((await engine.rows()).every(({ state, sends }) => state === 'staged' && sends === 0)).toBe(true)
})

/** A resume whose turn comes a minute after its look, for as many checks as are said. */
async function resumeLate({ lateLooks, meanwhile }: { lateLooks: number; meanwhile: object }) {
  let checks = 0
  let aheadMs = 0
  const kind: ChangeKind = {
    ...resumeSubscription,
    send: async (request) => {
      checks += 1
      if (checks <= lateLooks) {
        const id = String(request.body['id'])
        sandbox.control.update({ resource: 'subscriptions', id, fields: { ...meanwhile } })
        aheadMs += 60_000
      }
      return await resumeSubscription.send(request)
    },
  }
  const { sandbox, engine } = await startRun(kind, resumeRows, oneBroken)
  const { send, rows, ledger } = engine
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
