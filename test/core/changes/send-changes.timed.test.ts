import { createAttempts } from '../../../core/runs/sending-attempts.ts'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { sendWithinMs } from '../../../core/billing/transport.ts'
import type { Billing } from '../../../core/billing/client.ts'
import { Forbidden, Unauthorized } from '../../../core/billing/errors.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { summarize } from '../../../core/changes/report.ts'
import { sendOne } from '../../../core/changes/send/send-one.ts'
import { transition } from '../../../core/changes/transitions.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import { senderOf } from '../state/sender-of.ts'
import {
  addonRows,
  clientOf,
  contactRows,
  copies,
  requestsOf,
  retentionRows,
  startEngine,
  startRun,
  startSandbox,
} from './engine.ts'

const retentions = changeKinds['create-retention']
const addons = changeKinds['create-addon']
const post = 'POST /retentions/'

/** The state of each row, and how often it was sent. */
const statesOf = async ({ rows }: Awaited<ReturnType<typeof startEngine>>) =>
  (await rows()).map(({ state, sends }) => `${state} ${sends}`)

test('each change is on the disk as being sent before its request leaves, and closed by the answer', async () => {
  const sandbox = await startSandbox()
  const seen: (string | undefined)[] = []
  const watched: typeof retentions = {
    ...retentions,
    send: ({ options, ...request }) => {
      const beforeSend = async () => {
        await options.beforeSend?.()
        const row = await engine.ledger.row({ run: engine.run, row: Number(request.body['number']) })
        seen.push(row?.state)
      }
      return retentions.send({ ...request, options: { ...options, beforeSend } })
    },
  }
  const engine = await startEngine({ kind: watched, sandbox, concurrency: 3 })
  await engine.stage(retentionRows(20))
  const result = await engine.send()
  expect(result).toMatchObject({ ended: 'finished', done: 20, failed: 0, unknown: 0 })
  expect(seen).toEqual(Array.from({ length: 20 }, () => 'sending'))
  const rows = await engine.rows()
  expect(rows.every((row) => row.state === 'done' && row.outcome === 'created' && row.sends === 1)).toBe(true)
  expect(new Set(rows.map((row) => row.answerId)).size).toBe(20)
})

test('numbers leave digit for digit', async () => {
  const total = JSON.rawJSON('12345678901234567.890')
  const body = { ...retentionRows(1)[0]?.body, total }
  const { sandbox, engine } = await startRun(retentions, [{ row: 1, body }])
  await engine.send()
  const [sent] = requestsOf(sandbox, 'POST')
  expect(sent?.body).toContain('"total":12345678901234567.890')
})

test('no more are on their way at once than the bound says', async () => {
  const faults = [{ kind: 'latency', ms: 30 }] as const
  const { sandbox, engine } = await startRun(retentions, retentionRows(8), { faults, concurrency: 2 })
  await engine.send()
  const requests = sandbox.control.requests()
  const atOnce = requests.map(
    (one) =>
      requests.filter(
        (other) => other.receivedAt <= one.receivedAt && (other.answeredAt ?? Infinity) > one.receivedAt,
      ).length,
  )
  expect(Math.max(...atOnce)).toBe(2)
})

test('while answers wait to be recorded, as many other changes are sent as the bound says, and no more', async () => {
  const { sandbox, engine } = await startRun(retentions, retentionRows(8), { concurrency: 2 })
  const away = Promise.withResolvers<void>()
  const move = engine.ledger.move.bind(engine.ledger)
  let waiting = 0
  vi.spyOn(engine.ledger, 'move').mockImplementation(async (options) => {
    waiting += 1
    await away.promise
    return await move(options)
  })
  const sent = engine.send()
  await expect.poll(() => waiting).toBe(4)
  // A fifth would be sent by then.
  await sleep(50)
  expect(sandbox.control.requests()).toHaveLength(4)
  away.resolve()
  expect(await sent).toMatchObject({ ended: 'finished', done: 8 })
})

test('a lost reply is unknown and is not sent again by the sender, whatever it was lost by', async () => {
  const { sandbox, engine } = await startRun(retentions, retentionRows(6), {
    faults: [
      { kind: 'reset', effect: 'done', on: post, requests: [1] },
      { kind: 'reset', effect: 'none', on: post, requests: [2] },
      { kind: 'error', status: 503, html: true, on: post, requests: [3] },
      { kind: 'cutBody', on: post, requests: [4] },
      { kind: 'notFound', html: true, on: post, requests: [5] },
    ],
    concurrency: 1,
  })
  await engine.send()
  await engine.send()
  expect(await statesOf(engine)).toEqual([...Array.from({ length: 5 }, () => 'unknown 1'), 'done 1'])
  expect(requestsOf(sandbox, 'POST')).toHaveLength(6)
})

test.each([400, 404, 409, 422, 429])(
  'an addon that was made, and answered by a gateway with a page of %i, is left to a person',
  async (status) => {
    const on = 'POST /addons/'
    const { sandbox, engine } = await startRun(addons, addonRows(3), {
      faults: [{ kind: 'error', status, html: true, effect: 'done', on, requests: [2] }],
      concurrency: 1,
    })
    await engine.finish()
    expect((await engine.rows()).map(({ state }) => state)).toEqual(['done', 'parked', 'done'])
    expect([...copies(sandbox, 'addons', 'name').values()]).toEqual([1, 1, 1])
  },
)

test.each([401, 403])('a gateway’s page of %i stops the run, and one row is in doubt', async (status) => {
  const faults = [{ kind: 'error', status, html: true, effect: 'done', on: post, requests: [3] }] as const
  const { sandbox, engine } = await startRun(retentions, retentionRows(5), { faults, concurrency: 1 })
  await expect(engine.send()).rejects.toThrow('a gateway sent it')
  expect(await statesOf(engine)).toEqual(['done 1', 'done 1', 'unknown 1', 'staged 0', 'staged 0'])
  await engine.finish()
  expect((await engine.rows()).every(({ state }) => state === 'done')).toBe(true)
  expect([...copies(sandbox, 'retentions', 'number').values()]).toEqual([1, 1, 1, 1, 1])
})

test('a service that can not be reached leaves everything staged', async () => {
  const sandbox = await startSandbox()
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const address = closed.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  closed.close()
  await once(closed, 'close')
  const billing = clientOf(sandbox, { baseUrl: `http://127.0.0.1:${port}` })
  const engine = await startEngine({ kind: addons, sandbox, billing, concurrency: 1 })
  await engine.stage(addonRows(2))
  expect(await engine.send({ ms: 50 })).toMatchObject({ ended: 'timeUp', unknown: 0 })
  expect(await statesOf(engine)).toEqual(['staged 0', 'staged 0'])
})

test('what was claimed more than two seconds before it could leave is not sent then, also where it counts as unknown by now, and is sent once by the next claim', async () => {
  const { sandbox, engine } = await startRun(addons, addonRows(2), { concurrency: 1 })
  let claims = 0
  const billing = clientOf(sandbox)
  const slow: Billing = {
    ...billing,
    createAddon: (body, options = {}) =>
      billing.createAddon(body, {
        ...options,
        beforeSend: async () => {
          await options.beforeSend?.()
          claims += 1
          if (claims > 1) return
          const [row] = await engine.rows()
          // As another attempt does that takes the run over.
          const taken = { to: 'unknown', by: 'interruption', outcome: 'interrupted' } as const
          await transition({ ledger: engine.ledger, row: row!, ...taken })
          await sleep(sendWithinMs + 20)
        },
      }),
  }
  expect(await engine.send({ billing: slow })).toMatchObject({ ended: 'finished', done: 2, unknown: 0 })
  expect(await statesOf(engine)).toEqual(['done 1', 'done 1'])
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual([1, 1])
  expect(claims).toBe(3)
})

test.each([
  [401, Unauthorized],
  [403, Forbidden],
])('a %i stops the run with a sentence, and what it struck is still to be sent', async (status, error) => {
  const { sandbox, engine } = await startRun(retentions, retentionRows(50), {
    faults: [{ kind: 'error', status, on: post, from: 3 }],
    concurrency: 2,
  })
  await expect(engine.send()).rejects.toBeInstanceOf(error)
  const rows = await engine.rows()
  expect(rows.filter(({ state }) => state === 'done')).toHaveLength(2)
  expect(rows.filter(({ state, sends }) => state === 'staged' && sends === 0)).toHaveLength(48)
  expect(sandbox.control.requests().length).toBeLessThanOrEqual(6)
})

test('a change that was done in the other mode stops the run at that change', async () => {
  const { engine } = await startRun(retentions, retentionRows(5), {
    honoursTestMode: false,
    billing: (sandbox) => clientOf(sandbox, { testMode: true }),
    mode: 'test',
    limits: { concurrency: 1 },
  })
  await expect(engine.send()).rejects.toMatchObject({ name: 'WrongModeError' })
  const rows = await engine.rows()
  expect(rows.map(({ state }) => state)).toEqual(['done', 'staged', 'staged', 'staged', 'staged'])
  expect(rows[0]).toMatchObject({ outcome: 'wrongMode' })
  expect(rows[0]?.error).toContain('live mode')
})

test('a row that is stopped before its turn is never sent', async () => {
  const { sandbox, engine } = await startRun(addons, addonRows(1))
  const [row] = await engine.rows()
  if (row === undefined) throw new Error('not staged')
  const { ledger, billing } = engine
  const stop = AbortSignal.abort()
  const sender = await senderOf(ledger, engine.run)
  const sent = await sendOne({ ledger, sender, kind: addons, billing, row, stop })
  expect(sent).toEqual({})
  expect(sandbox.control.requests()).toEqual([])
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', claims: 0 })
})

test('a second attempt of a run ends and awaits the first, and neither sends twice', async () => {
  const { sandbox, engine } = await startRun(addons, addonRows(30), { faults: [{ kind: 'latency', ms: 20 }] })
  const attempts = createAttempts()
  const { signal } = new AbortController()
  const attempt = () =>
    attempts.take({ run: engine.run, signal, work: (stop) => engine.send({ signal: stop }) })
  const first = attempt()
  await expect.poll(() => sandbox.control.requests().length, { interval: 5 }).toBeGreaterThan(3)
  const [one, two] = await Promise.all([first, attempt()])
  expect(one.ended).toBe('stopped')
  expect(two.ended).toBe('finished')
  expect(one.done + two.done).toBe(30)
  // Nothing that the first was still sending was taken for lost.
  expect((await engine.rows()).every(({ unknownSince }) => unknownSince === null)).toBe(true)
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual(Array.from({ length: 30 }, () => 1))
})

/** Sends the phones of three contacts. */
async function updatePhones(faults: SandboxOptions['faults'] & {}) {
  const kind = changeKinds['update-contact']
  const changes = (sandbox: Sandbox) => contactRows(sandbox, 3, { phone: '+56900' })
  const how = { counts: { customers: 5 }, faults, concurrency: 1 }
  const { engine } = await startRun(kind, changes, how)
  await engine.finish()
  const verdict = verdictOf({ kind: kind.name, summary: await summarize(engine) })
  return { rows: await engine.rows(), verdict }
}

test('an answer that is not about the record that was asked for proves nothing', async () => {
  const on = 'PATCH /contacts/{id}/'
  const { rows, verdict } = await updatePhones([
    { kind: 'refuse', status: 200, answer: { status: 'ok' }, on, requests: [1] },
    { kind: 'refuse', status: 200, answer: { id: 'con_other' }, on, requests: [2] },
  ])
  const third = (JSON.parse(rows[2]!.body) as { id: string }).id
  expect(rows.map(({ answerId }) => answerId)).toEqual([null, null, third])
  expect(verdict).toMatchObject({
    verdict: 'unproven',
    reasons: ['2 done without an id in the service’s answer'],
  })
})

test('a create that is answered without an id is looked up, or left to a person', async () => {
  const answerWithoutId = (on: string) =>
    ({ kind: 'refuse', status: 200, answer: { status: 'ok' }, on, requests: [2] }) as const
  const looked = await startRun(retentions, retentionRows(3), {
    faults: [answerWithoutId(post)],
    concurrency: 1,
  })
  await looked.engine.finish()
  expect(await statesOf(looked.engine)).toEqual(['done 1', 'done 2', 'done 1'])
  expect((await looked.engine.rows()).map(({ answerId }) => answerId)).not.toContain(null)
  expect([...copies(looked.sandbox, 'retentions', 'number').values()]).toEqual([1, 1, 1])

  const faults = [answerWithoutId('POST /addons/')]
  const parked = await startRun(addons, addonRows(3), { faults, concurrency: 1 })
  await parked.engine.finish()
  expect((await parked.engine.rows()).map(({ state }) => state)).toEqual(['done', 'parked', 'done'])
})

test('an answer with other values than were sent is reported and proves nothing', async () => {
  const on = 'PATCH /contacts/{id}/'
  const { rows, verdict } = await updatePhones([
    { kind: 'storeOtherwise', fields: { phone: '' }, on, requests: [2] },
  ])
  expect(rows).toMatchObject([
    { outcome: 'updated', error: null },
    { state: 'done', outcome: 'storedDifferently', error: 'phone was sent as +56900 and is stored as ' },
    { outcome: 'updated', error: null },
  ])
  expect(verdict.reasons).toEqual(['1 stored differently than sent'])
})
