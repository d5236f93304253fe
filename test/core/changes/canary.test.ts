import { describe, expect, test } from 'vitest'
import { canaryResult, chooseCanary, markCanary, openCanary } from '../../../core/changes/send/canary.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { SentTooLate } from '../../../core/billing/errors.ts'
import { refusedFrom, retention, retentionRows, startRun } from './engine.ts'

const kind = changeKinds['create-retention']
const line = { name: 'x', amount: 1 }

test('goes first with the largest amount, the most lines and each type of document', async () => {
  const rows = Array.from({ length: 50 }, (_, index) => ({
    row: index + 1,
    body: retention(index + 1, { document: 7, total: 10, lines: [line] }),
  }))
  const change = (row: number, more: object) =>
    rows.splice(row - 1, 1, { row, body: retention(row, { document: 7, total: 10, lines: [line], ...more }) })
  change(20, { total: JSON.rawJSON('90071992547409931234.5') })
  change(21, { total: JSON.rawJSON('90071992547409931234.4') })
  change(30, { lines: [line, line, line] })
  change(40, { document: 8 })
  change(41, { document: 9 })
  const { engine } = await startRun(kind, rows)
  const choose = (size: number) => chooseCanary({ ledger: engine.ledger, run: engine.run, kind, size })
  expect(await choose(5)).toEqual([1, 20, 30, 40, 41])
  expect(await choose(2)).toEqual([20, 30])
  expect(await choose(7)).toEqual([1, 2, 3, 20, 30, 40, 41].toSorted((a, b) => a - b))
  expect(await choose(100)).toHaveLength(50)
})

test('goes first with the largest line and with rows that give other fields, where no row gives a total', async () => {
  const without = (row: number, lines: object[]) => {
    const { total: _, ...body } = retention(row, { document: 7, lines }) as Record<string, unknown>
    return { row, body }
  }
  const rows = Array.from({ length: 30 }, (_, index) => without(index + 1, [{ ...line, amount: index }]))
  rows.splice(9, 1, without(10, [{ name: 'no amount' }]))
  const { engine } = await startRun(kind, rows)
  const chosen = await chooseCanary({ ledger: engine.ledger, run: engine.run, kind, size: 3 })
  expect(chosen).toEqual([1, 10, 30])
})

test('stops the run only if all of it failed', async () => {
  for (const [rows, failed] of [
    [[1, 2, 3], []],
    [[2, 3], ['']],
  ] as const) {
    const { engine } = await startRun(kind, refusedFrom(2, retentionRows(4)), { concurrency: 1 })
    await engine.ledger.addToCanary({ run: engine.run, rows })
    expect(await canaryResult(engine)).toEqual({ rows: [], failed: [] })
    await engine.send({ canary: true })
    expect(await canaryResult(engine)).toEqual({ rows, failed })
    expect((await engine.rows())[3]).toMatchObject({ state: 'staged', sends: 0 })
  }
})

test('goes first although a request was claimed, if none has left', async () => {
  const late: typeof kind = {
    ...kind,
    send: async ({ options }) => {
      await options.beforeSend?.()
      throw new SentTooLate({ method: 'POST', path: '/retentions/', ms: 2_500 })
    },
  }
  const { engine } = await startRun(late, retentionRows(3), { concurrency: 1 })
  await engine.send({ ms: 500 })
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', sends: 0 })
  expect((await engine.rows())[0]?.claims).toBeGreaterThan(0)
  expect((await openCanary({ ...engine, kind, size: 2 })).canary).toEqual([1, 3])
})

describe('the canary of a run that begins again', () => {
  const none = { sent: 0, again: 0 }
  /** Ten rows of two breakers with a canary, of which these have this state; those of `sent` may have been sent. */
  async function beginAgain(
    states: Readonly<Record<number, 'staged' | 'unknown' | 'rejected' | 'done' | 'parked'>>,
    { sent = Object.keys(states).map(Number) }: { sent?: number[] } = {},
  ) {
    const rows = retentionRows(10).map((row) => ({ ...row, breakerKey: row.row > 5 ? 'b' : 'a' }))
    const { engine } = await startRun(kind, rows)
    const { ledger } = engine
    expect(await markCanary({ ...engine, size: 2 })).toBe(true)
    expect(await openCanary({ ...engine, size: 2 })).toEqual({ open: 10, ...none, canary: [1, 5, 6, 10] })
    for (const { id, row } of await engine.rows()) {
      const state = states[row]
      if (state === undefined) continue
      await ledger.move({ id, from: ['staged'], patch: { state, sends: sent.includes(row) ? 1 : 0 } })
    }
    const chose = await markCanary({ ...engine, size: 2 })
    const { open: _, ...opened } = await openCanary({ ...engine, size: 2 })
    return { chose, ...opened }
  }

  test.each([
    ['stays what it was', {}, { ...none, canary: [1, 5, 6, 10] }],
    [
      'is what was sent, while that has no result',
      { 1: 'unknown', 5: 'rejected' },
      { sent: 2, again: 2, canary: [1, 5, 6, 10] },
    ],
    [
      'is not sent again where one of it is done',
      { 1: 'done', 5: 'rejected' },
      { sent: 2, again: 0, canary: [6, 10] },
    ],
    [
      'is the same where all of it failed',
      { 1: 'rejected', 5: 'parked' },
      { sent: 2, again: 2, canary: [1, 5, 6, 10] },
    ],
  ] as const)('%s', async (_, states, opened) => {
    expect(await beginAgain(states)).toEqual({ chose: false, ...opened })
  })

  test('is chosen again where the checks before sending held all of it back', async () => {
    const { chose, canary } = await beginAgain({ 1: 'parked', 5: 'parked' }, { sent: [] })
    expect(chose).toBe(true)
    expect(canary).toEqual([2, 4, 6, 10])
  })

  test.each([
    ['is none where the run has no more than a small file', 10, []],
    ['counts what has a result among the rows of a run that is just large enough', 9, [1, 10]],
  ] as const)('%s', async (_, unlessAtMost, canary) => {
    const { engine } = await startRun(kind, retentionRows(10))
    const [, second] = await engine.rows()
    await engine.ledger.move({ id: second!.id, from: ['staged'], patch: { state: 'rejected', sends: 1 } })
    const opened = { open: 9, sent: 1, again: 0, canary }
    expect(await openCanary({ ...engine, size: 2, unlessAtMost })).toEqual(opened)
  })

  test('does not count rows that are closed without being sent', async () => {
    const { engine } = await startRun(kind, retentionRows(10))
    const [first] = await engine.rows()
    await engine.ledger.move({ id: first!.id, from: ['staged'], patch: { state: 'dropped' } })
    expect(await markCanary({ ...engine, size: 2, unlessAtMost: 9 })).toBe(false)
  })
})

test('is sent first, and chosen again among rows that a restored ledger has lost, before the others are sent', async () => {
  const { engine } = await startRun(kind, retentionRows(30))
  for (const { id } of await engine.rows())
    await engine.ledger.move({ id, from: ['staged'], patch: { outcome: 'absent', sends: 1, claims: 1 } })
  const step = await engine.segment({ canary: true, canarySize: { size: 3 } })
  expect(step).toMatchObject({ ended: 'finished', counts: { done: 3, staged: 27 }, canary: { failed: [] } })
  expect(step.canary?.rows).toHaveLength(3)
})
