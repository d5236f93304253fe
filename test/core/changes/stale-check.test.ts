import { expect, test } from 'vitest'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { resumeSubscription } from '../../../core/changes/kinds/resume-subscription.ts'
import { startEngine, startSandbox } from './engine.ts'

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
  const { send, stage, rows } = await startEngine({ kind, sandbox })
  await stage([{ row: 1, body: { id, customer } }])
  await send({ now: () => Date.now() + aheadMs, ms: 10_000 })
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
