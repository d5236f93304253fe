import { expect, test } from 'vitest'
import { type BreakerStates, Breakers, afterTrial, isBad } from '../../../core/changes/send/breaker.ts'
import type { ChangeEvent } from '../../../core/state/schema.ts'
import type { ReportCounts } from '../../../core/runs/view/counts.ts'
import { setImmediate } from 'node:timers/promises'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import { refusedFrom, retentionRows, startEngine, startRun, startSandbox } from './engine.ts'

/** Events in the order in which they came: s succeeded, f failed, x was answered by something else. */
const isBadAfter = (events: string, share = 0.5) => {
  const names: Record<string, ChangeEvent> = { s: 'success', f: 'failure', x: 'fault' }
  return isBad(Array.from(events, (event) => names[event] ?? 'fault').toReversed(), share)
}

test('a breaker opens after ten outcomes, if more of them failed than the share allows', () => {
  expect(isBadAfter('f'.repeat(9))).toBe(false)
  expect(isBadAfter('f'.repeat(10))).toBe(true)
  expect(isBadAfter('sf'.repeat(10))).toBe(false)
  expect(isBadAfter(`${'sf'.repeat(10)}f`)).toBe(true)
})

test('a breaker counts the last twenty outcomes only', () => {
  expect(isBadAfter(`${'s'.repeat(30)}${'f'.repeat(10)}`)).toBe(false)
  expect(isBadAfter(`${'s'.repeat(30)}${'f'.repeat(11)}`)).toBe(true)
})

test('a breaker opens on ten faults in a row, and an answer between them resets the count', () => {
  expect(isBadAfter('xxxxxxxxxsxxxxxxxxx')).toBe(false)
  expect(isBadAfter('xxxxxxxxxsxxxxxxxxxx')).toBe(true)
})

test('a trial that succeeds closes a breaker, one that fails delays the next, and one without a result changes nothing', () => {
  const open = { clearedAt: 1, openedAt: 10, trials: 1 }
  expect(afterTrial(open, { at: 20, event: 'success' })).toEqual({ clearedAt: 20, trials: 0 })
  for (const event of ['failure', 'fault'] as const)
    expect(afterTrial(open, { at: 20, event })).toEqual({ clearedAt: 1, openedAt: 20, trials: 2 })
  for (const trial of ['pending', undefined] as const) expect(afterTrial(open, trial)).toEqual(open)
})

const kind = changeKinds['create-retention']

/** A clock that the test moves. */
async function startSends(faults: Fault[] = []) {
  const sandbox = await startSandbox({ faults })
  const engine = await startEngine({ kind, sandbox })
  const clock = { now: 1_000_000 }
  const ledger = { ...engine.ledger, now: () => (clock.now += 1) }
  let breakers: BreakerStates = {}
  const send = async (options: Parameters<typeof engine.send>[0] = {}) => {
    const limits = { concurrency: 1 }
    const result = await engine.send({ ledger, limits, breakers, ...options })
    ;({ breakers } = result)
    return result
  }
  return { engine, clock, send, forget: (states: BreakerStates = {}) => (breakers = states) }
}

const abortAfter = (number: number, stopping: AbortController) => {
  let before: number | undefined
  return ({ staged }: ReportCounts) => {
    before ??= staged
    if (before - staged === number) stopping.abort()
  }
}

test('one change is tried after 1, 2 and 4 minutes; when one succeeds, the others continue', async () => {
  const { engine, clock, send } = await startSends()
  const rows = refusedFrom(1, retentionRows(60)).map((row) =>
    row.row < 12 || row.row === 13 ? row : { ...row, body: retentionRows(60)[row.row - 1]?.body ?? row.body },
  )
  await engine.stage(rows)
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 10 })
  clock.now = (await send()).nextAt ?? 0
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 1, failed: 1 })
  clock.now += 60_000
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 0 })
  clock.now += 61_000
  expect(await send()).toMatchObject({ ended: 'finished', failed: 1, done: 48 })
})

test('a trial whose reply was lost is waited for: no other one goes until a look has settled it', async () => {
  const { engine, clock, send } = await startSends([
    { kind: 'reset', effect: 'done', on: 'POST /retentions/', requests: [11] },
  ])
  const good = retentionRows(30).slice(10)
  await engine.stage([...refusedFrom(1, retentionRows(10)), ...good])
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 10, failed: 10 })
  clock.now += 61_000
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 1, unknown: 1 })
  clock.now += 600_000
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 0, givenUp: [] })
  const looked = await send({ lookupsOnly: true, settleMs: 1_000 })
  expect(looked).toMatchObject({ done: 1, counts: { unknown: 0 } })
  expect(await send()).toMatchObject({ ended: 'finished', done: 19 })
})

test('a lane of which all trials failed is given up until a person opens it', async () => {
  const { clock, engine, send, forget } = await startSends()
  await engine.stage(refusedFrom(1, retentionRows(40)))
  await send()
  for (const minutes of [1, 2, 4]) {
    clock.now += minutes * 60_000 + 1_000
    expect(await send()).toMatchObject({ begun: 1, failed: 1 })
  }
  clock.now += 3_600_000
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 0, givenUp: [''] })
  forget({ '': { clearedAt: clock.now, trials: 0 } })
  expect(await send()).toMatchObject({ begun: 10, givenUp: [] })
})

test('a crash forgets no outcome: the ledger opens the breaker again', async () => {
  const { engine, send, forget } = await startSends()
  await engine.stage(refusedFrom(1, retentionRows(60)))
  await send()
  forget()
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 0 })
})

test('ten replies in a row that are not the service’s open it, in however many rounds they come', async () => {
  const gateway = { kind: 'error', status: 504, html: true, effect: 'none', on: 'POST /retentions/' } as const
  const { engine } = await startRun(kind, retentionRows(30), { faults: [gateway], concurrency: 1 })
  const begun: number[] = []
  for (let round = 0; round < 6; round += 1) {
    const stopping = new AbortController()
    const onProgress = abortAfter(4, stopping)
    begun.push((await engine.send({ signal: stopping.signal, onProgress })).begun)
  }
  expect(begun).toEqual([4, 4, 2, 0, 0, 0])
})

test('an answer of the service ends a row of replies that are not its own, also of an earlier round', async () => {
  const gateway = { kind: 'error', status: 504, html: true, effect: 'none', on: 'POST /retentions/' } as const
  const { engine } = await startRun(kind, retentionRows(13), {
    faults: [{ ...gateway, requests: [1, 2, 3, 4, 5, 6, 8, 9, 10, 11] }],
    concurrency: 1,
  })
  for (const ended of ['stopped', 'waiting']) {
    const stopping = new AbortController()
    const onProgress = abortAfter(6, stopping)
    const { signal } = stopping
    expect(await engine.send(ended === 'stopped' ? { signal, onProgress } : {})).toMatchObject({ ended })
  }
})

test('a trial that closes the breaker while the next change is asked for does not end the round', async () => {
  const { engine, clock, send } = await startSends()
  await engine.stage([...refusedFrom(1, retentionRows(10)), ...retentionRows(14).slice(10)])
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 10 })
  clock.now += 61_000
  const due = engine.ledger.due.bind(engine.ledger)
  engine.ledger.due = async (options) => {
    const rows = await due(options)
    const isTrialInFlight = (options.exceptBreakerKeys?.length ?? 0) > 0
    if (!isTrialInFlight) return rows
    while ((await engine.rows()).some(({ state }) => state === 'sending')) await setImmediate()
    for (let turn = 0; turn < 5; turn += 1) await setImmediate()
    return rows
  }
  expect(await send()).toMatchObject({ ended: 'finished', done: 4 })
})

test('a change that a lookup finds done does not end a series of replies that are not the service’s', async () => {
  const gateway = { kind: 'error', status: 504, html: true, effect: 'done', on: 'POST /retentions/' } as const
  const { engine } = await startRun(kind, retentionRows(20), { faults: [gateway], concurrency: 1 })
  const stopping = new AbortController()
  const first = await engine.send({ signal: stopping.signal, onProgress: abortAfter(5, stopping) })
  await engine.settle()
  expect((await engine.rows()).filter(({ outcome }) => outcome === 'found')).toHaveLength(5)
  expect([first.begun, (await engine.send()).begun]).toEqual([5, 5])
})

test('a request in flight when a breaker opened is not a trial of it', async () => {
  const { engine, clock, send } = await startSends()
  const last = Promise.withResolvers<void>()
  const { billing } = engine
  const held: typeof billing = {
    ...billing,
    createRetention: async (body, options) => {
      const answer = billing.createRetention(body, options)
      if (body['number'] === 11) await answer.catch(() => undefined).then(() => last.promise)
      return await answer
    },
  }
  await engine.stage(refusedFrom(1, retentionRows(30)))
  const limits = { concurrency: 11 }
  const onProgress = ({ rejected }: ReportCounts) => {
    if (rejected === 10) {
      clock.now += 30_000
      last.resolve()
    }
  }
  const { openBreakers } = await send({ billing: held, limits, onProgress })
  expect(openBreakers).toMatchObject([{ trial: 1 }])
  expect((openBreakers[0]?.nextTrialAt ?? 0) - clock.now).toBeGreaterThan(59_000)
})

test('an open breaker admits one trial at a time, however many changes may be in flight', async () => {
  const { engine, clock, send } = await startSends()
  await engine.stage(refusedFrom(1, retentionRows(30)))
  expect(await send()).toMatchObject({ ended: 'breaker', begun: 10 })
  clock.now += 61_000
  const limits = { concurrency: 4 }
  expect(await send({ limits })).toMatchObject({ ended: 'breaker', begun: 1 })
})

test('refusals open a breaker, however many faulty replies come between them', async () => {
  const { engine } = await startSends()
  await engine.stage(retentionRows(60))
  for (const { id, row } of await engine.rows()) {
    const event = row % 4 === 0 ? 'failure' : 'fault'
    await engine.ledger.move({ id, from: ['staged'], patch: { state: 'unknown', event, eventAt: row } })
  }
  const { run } = engine
  const ledger = { ...engine.ledger, now: () => 100 }
  const breakers = await Breakers.load({ ledger, run, states: {}, maxFailureShare: () => 0.5 })
  expect(breakers.report.openBreakers).toMatchObject([{ failed: 15, of: 15 }])
})

test('a change that was done twice is told although the ledger fails after its answer', async () => {
  const { engine, send } = await startSends()
  await engine.stage(retentionRows(2))
  let isDone = false
  const ledger: typeof engine.ledger = {
    ...engine.ledger,
    async move(options) {
      const moved = await engine.ledger.move(options)
      if (options.patch.state !== 'done' || isDone) return moved
      isDone = true
      // Another attempt recorded the same change under an id of its own.
      await engine.ledger.move({ id: options.id, from: ['done'], patch: { answerId: 'another' } })
      return false
    },
    async breakerEvents(options) {
      if (isDone) throw new Error('the disk is full')
      return await engine.ledger.breakerEvents(options)
    },
  }
  const doubled: unknown[] = []
  await expect(send({ ledger, onDoubled: (one) => doubled.push(one) })).rejects.toThrow('the disk is full')
  expect(doubled).toMatchObject([{ row: 1 }])
})
