import { describe, expect, test } from 'vitest'
import { failedCanaries, chooseCanary, openCanary } from '../../../core/changes/send/canary.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { SentTooLate } from '../../../core/billing/errors.ts'
import { refusedFrom, retention, retentionRows, startEngine, startSandbox } from './engine.ts'

const kind = changeKinds['create-retention']
const line = { name: 'x', amount: 1 }

test('goes first with the largest amount, the most lines and each type of document', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
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
  await engine.stage(rows)
  const choose = (size: number) => chooseCanary({ ledger: engine.ledger, run: engine.run, kind, size })
  expect(await choose(5)).toEqual([1, 20, 30, 40, 41])
  expect(await choose(2)).toEqual([20, 30])
  expect(await choose(7)).toEqual([1, 2, 3, 20, 30, 40, 41].toSorted((a, b) => a - b))
  expect(await choose(100)).toHaveLength(50)
})

test('goes first with the largest line and with rows that give other fields, where no row gives a total', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox() })
  const without = (row: number, lines: object[]) => {
    const { total: _, ...body } = retention(row, { document: 7, lines }) as Record<string, unknown>
    return { row, body }
  }
  const rows = Array.from({ length: 30 }, (_, index) => without(index + 1, [{ ...line, amount: index }]))
  rows.splice(9, 1, without(10, [{ name: 'no amount' }]))
  await engine.stage(rows)
  const chosen = await chooseCanary({ ledger: engine.ledger, run: engine.run, kind, size: 3 })
  expect(chosen).toEqual([1, 10, 30])
})

test('stops the run only if all of it failed', async () => {
  const engine = await startEngine({ kind, sandbox: await startSandbox(), limits: { inFlight: 1 } })
  await engine.stage(refusedFrom(2, retentionRows(3)))
  const failed = (rows: number[]) => failedCanaries({ ledger: engine.ledger, run: engine.run, rows })
  expect(await failed([2, 3])).toEqual([])
  await engine.send({ rows: [1, 2, 3] })
  expect(await failed([1, 2, 3])).toEqual([])
  expect(await failed([2, 3])).toEqual([''])
})

test('goes first although a request was claimed, if none has left', async () => {
  const late: typeof kind = {
    ...kind,
    send: async ({ options }) => {
      await options.beforeSend?.()
      throw new SentTooLate({ method: 'POST', path: '/retentions/', ms: 2_500 })
    },
  }
  const sandbox = await startSandbox()
  const engine = await startEngine({ kind: late, sandbox, limits: { inFlight: 1 } })
  await engine.stage(retentionRows(3))
  await engine.send({ ms: 500 })
  expect((await engine.rows())[0]).toMatchObject({ state: 'staged', sends: 0 })
  expect((await engine.rows())[0]?.claims).toBeGreaterThan(0)
  const canary = () => openCanary({ ledger: engine.ledger, run: engine.run, kind, size: 2 })
  expect(await canary()).toEqual([1, 3])
})

describe('the canary of a run that begins again', () => {
  /** Ten rows of two breakers, of which these were sent, each with its result. */
  async function beginAgain(
    sent: Readonly<Record<number, 'staged' | 'unknown' | 'rejected' | 'done'>>,
    more: { unlessAtMost?: number } = {},
  ) {
    const engine = await startEngine({ kind, sandbox: await startSandbox() })
    const { ledger, run } = engine
    await engine.stage(retentionRows(10).map((row) => ({ ...row, breakerKey: row.row > 5 ? 'b' : 'a' })))
    for (const { id, row } of await engine.rows()) {
      const state = sent[row]
      if (state !== undefined) await ledger.move({ id, from: ['staged'], patch: { state, sends: 1 } })
    }
    return await openCanary({ ledger, run, kind, size: 2, ...more })
  }

  test.each([
    ['is of each breaker where nothing was sent', {}, [1, 5, 6, 10]],
    ['is what was sent, while that has no result', { 2: 'unknown', 4: 'rejected' }, [2, 4, 6, 10]],
    ['is completed where only a part of it was sent', { 3: 'unknown' }, [3, 5, 6, 10]],
    ['is completed by others than those that are due again', { 5: 'staged' }, [4, 5, 6, 10]],
    ['is not sent again where one of it is done', { 2: 'done', 4: 'rejected' }, [6, 10]],
    ['is over where more than it was sent', { 1: 'unknown', 2: 'unknown', 3: 'unknown' }, [6, 10]],
  ] as const)('%s', async (_, sent, rows) => {
    expect(await beginAgain(sent)).toEqual(rows)
  })

  test.each([
    ['is none where the run has no more than a small file', 10, []],
    ['counts what has a result among the rows of a run that is just large enough', 9, [2, 4, 6, 10]],
  ] as const)('%s', async (_, unlessAtMost, rows) => {
    expect(await beginAgain({ 2: 'unknown', 4: 'rejected' }, { unlessAtMost })).toEqual(rows)
  })

  test('does not count rows that are closed without being sent', async () => {
    const engine = await startEngine({ kind, sandbox: await startSandbox() })
    const { ledger, run } = engine
    await engine.stage(retentionRows(10))
    await ledger.move({ id: (await engine.rows())[0]!.id, from: ['staged'], patch: { state: 'dropped' } })
    expect(await openCanary({ ledger, run, kind, size: 2, unlessAtMost: 9 })).toEqual([])
  })
})
