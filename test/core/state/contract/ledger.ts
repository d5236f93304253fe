import { expect, onTestFinished, test } from 'vitest'
import type { FencingToken } from '../../../../core/state/ledger/claims.ts'
import { KeyHeldError, SupersededError } from '../../../../core/state/errors.ts'
import type { Ledger } from '../../../../core/state/ledger/ledger.ts'
import { openState } from '../../../../core/state/open.ts'
import type { NewChange, Repeats } from '../../../../core/state/ledger/stage.ts'
import type { NewPlace } from './place.ts'
import { senderOf, takeRight } from '../sender-of.ts'

const space = { workspace: 'acc_1', mode: 'live', kind: 'create-retention' } as const
const change = (row: number, key = `k${row}`): NewChange => ({ row, key, body: `{"number":${row}}` })
const changes = (...rows: number[]) => rows.map((row) => change(row))
const of = (run: string, changes: NewChange[], repeats: Repeats = 'never') => ({
  ...space,
  run,
  repeats,
  changes,
})

const idOf = async (ledger: Ledger, run: string, row: number) => (await ledger.row({ run, row }))?.id ?? 0

const claimRow = async (ledger: Ledger, run: string, row: number, at = 1) => {
  const found = await ledger.row({ run, row })
  const sender = await senderOf(ledger, run)
  return await ledger.claim({ sender, id: found?.id ?? 0, sends: found?.sends ?? 0, at })
}

/** What every ledger promises. */
export function describeLedger(newPlace: NewPlace): void {
  const open = async () => {
    const state = await openState(await newPlace())
    onTestFinished(() => state.close())
    return state.ledger
  }

  test('staging the same again changes nothing; other contents under the same run are refused', async () => {
    const ledger = await open()
    expect(await ledger.stage(of('r', changes(1, 2)))).toEqual({ staged: 2, held: [] })
    expect(await ledger.stage(of('r', changes(2, 3)))).toEqual({ staged: 1, held: [] })
    await expect(ledger.stage(of('r', [{ ...change(2), body: '{}' }, change(4)]))).rejects.toMatchObject({
      name: 'RunTakenError',
    })
    expect(await ledger.row({ run: 'r', row: 4 })).toBeUndefined()
  })

  test('a change that was never claimed is closed when it is staged again as closed; one that was, or that a person decided, is not', async () => {
    const ledger = await open()
    await ledger.stage(of('r', changes(1, 2, 3, 4)))
    const claimed = await claimRow(ledger, 'r', 2)
    await ledger.move({ id: claimed?.id ?? 0, from: ['sending'], patch: { state: 'staged' } })
    const decided = await ledger.row({ run: 'r', row: 3 })
    await ledger.move({ id: decided?.id ?? 0, from: ['staged'], patch: { resolvedBy: 'Ana' } })
    const closed = { state: 'dropped', outcome: 'existed', error: 'it exists as 9' } as const
    const before = '{"ids":["9"]}'
    const again = [1, 2, 3].map((row) => ({ ...change(row), before, closed }))
    const result = await ledger.stage(of('r', [...again, { ...change(4), before }]))
    expect(result).toEqual({ staged: 0, held: [] })
    expect(await Array.fromAsync(ledger.rows({ run: 'r' }))).toMatchObject([
      { row: 1, state: 'dropped', outcome: 'existed', error: 'it exists as 9', before, holdsKey: 0 },
      { row: 2, state: 'staged', outcome: null, holdsKey: 1 },
      { row: 3, state: 'staged', outcome: null, holdsKey: 1 },
      { row: 4, state: 'staged', outcome: null, before, holdsKey: 1 },
    ])
    expect(await ledger.stage(of('other', [change(1)]))).toMatchObject({ staged: 1, held: [] })
  })

  test('what an attempt to stage a change saw is not forgotten if an attempt that was given up wakes and stages it, too', async () => {
    const ledger = await open()
    const before = '{"ids":["9"]}'
    await ledger.stage(of('r', [{ ...change(1), before }]))
    expect(await ledger.stage(of('r', [change(1)]))).toEqual({ staged: 0, held: [] })
    expect(await ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'staged', before })
  })

  test('after a restore, every open change of a run is unknown at once, and counts what may have been sent once', async () => {
    const ledger = await open()
    const rows = [1, 2, 3, 4, 5, 6]
    await ledger.stage(of('r', changes(...rows)))
    await ledger.stage(of('other', [change(7)]))
    for (const row of [2, 3, 4]) await claimRow(ledger, 'r', row)
    const from = ['sending'] as const
    await ledger.move({
      id: await idOf(ledger, 'r', 3),
      from,
      patch: { state: 'unknown', lookups: 1, unknownSince: 1 },
    })
    await ledger.move({ id: await idOf(ledger, 'r', 4), from, patch: { state: 'done' } })
    const mark = (forgotten: number, at = 99) =>
      ledger.markRestored({ at, bounded: { kinds: ['create-retention'], sends: 2 }, forgotten })
    const all = new Map([
      ['other', 1],
      ['r', 5],
    ])
    expect(await mark(7)).toEqual(all)
    const unknown = { state: 'unknown', outcome: 'restored', lookups: 0, unknownSince: 99, sentAt: 99 }
    const marked = [
      { row: 1, ...unknown, sends: 2, claims: 1 },
      { row: 2, ...unknown, sends: 3, claims: 2 },
      { row: 3, ...unknown, sends: 3, claims: 2 },
      { row: 4, state: 'done', sends: 1, claims: 1 },
      { row: 5, ...unknown, sends: 2, claims: 1 },
      { row: 6, ...unknown, sends: 2, claims: 1 },
    ]
    expect(await Array.fromAsync(ledger.rows({ run: 'r' }))).toMatchObject(marked)
    expect(await mark(0)).toEqual(new Map())
    await ledger.move({ id: await idOf(ledger, 'r', 1), from: ['unknown'], patch: { lookups: 1 } })
    expect(await mark(0)).toEqual(new Map([['r', 1]]))
    expect(await ledger.row({ run: 'other', row: 7 })).toMatchObject({ state: 'unknown', claims: 1 })
    expect(await ledger.known({ run: 'other' })).toEqual({ rows: 1, claims: 99 + 1 })
    expect(await ledger.known({ run: 'none' })).toEqual({ rows: 0, claims: 99 })
    // Those of the rows, the second one of the first row included, and those that were forgotten.
    expect(await ledger.claimed()).toBe(10 + 7)
    // Where claims were made and lost since, nothing shows which.
    expect(await mark(1, 100)).toEqual(all)
    expect(await ledger.row({ run: 'r', row: 2 })).toMatchObject({ sends: 5, unknownSince: 100, sentAt: 100 })
    expect(await ledger.claimed()).toBe(16 + 8)
  })

  test('after a restore, a parked change of which attempts are bounded counts what may have been sent on the word of a person', async () => {
    const ledger = await open()
    await ledger.stage(of('r', changes(1, 2, 3, 4)))
    for (const row of [1, 2, 3]) await claimRow(ledger, 'r', row)
    const park = async (row: number, patch: object) => {
      const { id } = (await ledger.row({ run: 'r', row }))!
      await ledger.move({ id, from: ['sending', 'staged'], patch: { state: 'parked', ...patch } })
    }
    await park(1, {})
    // Neither used-up attempts nor a change that was never sent is in doubt.
    await park(2, { holdsKey: 0 })
    await park(4, {})
    const mark = (kind: string) =>
      ledger.markRestored({ at: 99, bounded: { kinds: [kind], sends: 2 }, forgotten: 7 })
    await mark('another')
    expect(await ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'parked', sends: 1 })
    await mark('create-retention')
    expect(await Array.fromAsync(ledger.rows({ run: 'r', state: 'parked' }))).toMatchObject([
      { row: 1, sends: 3, claims: 1 },
      { row: 2, sends: 1 },
      { row: 4, sends: 0 },
    ])
    expect(await ledger.repairedAt()).toBe(99)
  })

  test('the totals leave out the parked resumes, which the next recovery reads again', async () => {
    const ledger = await open()
    const kind = 'resume-subscription'
    const closed = { state: 'parked', outcome: 'needsPerson', error: 'ask for a new one' } as const
    await ledger.stage({ ...of('a', [{ ...change(1), closed }, change(2)]), kind })
    await ledger.stage(of('b', [{ ...change(1), closed }, change(2)]))
    expect(await ledger.totals()).toEqual(
      expect.arrayContaining([
        { state: 'parked', number: 1 },
        { state: 'staged', number: 2 },
      ]),
    )
  })

  test('a change that is staged after a restore may have been sent, unless it is closed', async () => {
    const ledger = await open()
    const restored = { sends: 2, unknownSince: 99, sentAt: 98 }
    const closed = { state: 'rejected', outcome: 'invalid', error: 'no date' } as const
    await ledger.stage(
      of('r', [
        { ...change(1), restored },
        { ...change(2), restored, closed },
      ]),
    )
    expect(await Array.fromAsync(ledger.rows({ run: 'r' }))).toMatchObject([
      { state: 'unknown', outcome: 'restored', claims: 0, sends: 2, unknownSince: 99, sentAt: 98 },
      { state: 'rejected', outcome: 'invalid', claims: 0, sends: 0 },
    ])
  })

  test('a change is claimed once, however many ask at once', async () => {
    const ledger = await open()
    await ledger.stage(of('r', [change(1)]))
    const id = await idOf(ledger, 'r', 1)
    const sender = await senderOf(ledger, 'r')
    const claims = await Promise.all(
      Array.from({ length: 5 }, () => ledger.claim({ sender, id, sends: 0, at: 7, before: '{}' })),
    )
    expect(claims.filter((claim) => claim !== undefined)).toMatchObject([
      { state: 'sending', sends: 1, claims: 1, sentAt: 7, before: '{}' },
    ])
    await ledger.move({ id, from: ['sending'], patch: { state: 'staged' } })
    expect(await ledger.claim({ sender, id, sends: 0, at: 8 }), 'sent since it was read').toBeUndefined()
    expect(await ledger.claim({ sender, id, sends: 1, at: 8 })).toMatchObject({ sends: 2 })
  })

  test('gives due rows in order: staged, asked for, not in hand, not in a closed lane', async () => {
    const ledger = await open()
    const changes = [
      change(5),
      { ...change(1), notBefore: 100 },
      { ...change(2), breakerKey: 'slow' },
      change(3),
    ]
    await ledger.stage(of('r', changes))
    const due = async (options: object) =>
      (await ledger.due({ run: 'r', at: 99, limit: 10, ...options })).map(({ row }) => row)
    expect(await due({})).toEqual([2, 3, 5])
    expect(await due({ limit: 2 })).toEqual([2, 3])
    expect(await due({ at: 100 })).toEqual([1, 2, 3, 5])
    expect(await due({ rows: [1, 5] })).toEqual([5])
    expect(await due({ exceptBreakerKeys: ['slow'] })).toEqual([3, 5])
    const id = await idOf(ledger, 'r', 3)
    expect(await due({ exceptIds: [id] })).toEqual([2, 5])
    expect(await ledger.nextDue({ run: 'r' })).toBe(0)
    await ledger.claim({ sender: await senderOf(ledger, 'r'), id, sends: 0, at: 1 })
    expect(await due({})).toEqual([2, 5])
  })

  test('moves a change only from where the caller saw it', async () => {
    const ledger = await open()
    await ledger.stage(of('r', [change(1)]))
    const claimed = await claimRow(ledger, 'r', 1)
    const id = claimed?.id ?? 0
    expect(await ledger.move({ id, from: ['unknown'], patch: { state: 'done' } })).toBe(false)
    expect(await ledger.move({ id, from: ['sending'], claims: 2, patch: { state: 'done' } })).toBe(false)
    const patch = { state: 'done', answerId: '17', holdsKey: 1 } as const
    expect(await ledger.move({ id, from: ['sending'], claims: 1, patch })).toBe(true)
    expect(await ledger.byId({ id })).toMatchObject({ state: 'done', answerId: '17', sends: 1 })
  })

  test('moves that are made at once each write their own columns, and a later move finds what was written', async () => {
    const ledger = await open()
    await ledger.stage(of('r', [{ ...change(1), notBefore: 9 }, change(2), change(3)]))
    const [one, two, three] = [
      await idOf(ledger, 'r', 1),
      await idOf(ledger, 'r', 2),
      await idOf(ledger, 'r', 3),
    ]
    const from = ['staged'] as const
    const moved = await Promise.all([
      ledger.move({
        id: one,
        from,
        patch: { state: 'unknown', error: 'cut \u{1F600}'.slice(0, -1), answer: 'a\0b' },
      }),
      ledger.move({ id: two, from, outcome: 'other', patch: { state: 'done' } }),
      ledger.move({ id: three, from, claims: 0, patch: { holdsKey: 0, closedAt: 1_790_000_000_123 } }),
    ])
    expect(moved).toEqual([true, false, true])
    expect(await ledger.move({ id: one, from, patch: { state: 'done' } })).toBe(false)
    expect(await ledger.move({ id: one, from: ['unknown'], patch: { state: 'parked', answer: null } })).toBe(
      true,
    )
    expect(await ledger.byId({ id: one })).toMatchObject({
      state: 'parked',
      error: 'cut \uFFFD',
      answer: null,
      notBefore: 9,
      body: '{"number":1}',
      claims: 0,
    })
    expect(await ledger.byId({ id: two })).toMatchObject({ state: 'staged' })
    expect(await ledger.byId({ id: three })).toMatchObject({ holdsKey: 0, closedAt: 1_790_000_000_123 })
  })

  test('of moves that are made at once, one whose key is held fails alone', async () => {
    const ledger = await open()
    await ledger.stage(of('a', [change(1, 'K'), change(2, 'L')]))
    const [one, two] = [await ledger.row({ run: 'a', row: 1 }), await ledger.row({ run: 'a', row: 2 })]
    await ledger.move({ id: one?.id ?? 0, from: ['staged'], patch: { state: 'rejected' } })
    await ledger.stage(of('b', [change(1, 'K')]))
    const [failed, moved] = await Promise.allSettled([
      ledger.move({ id: one?.id ?? 0, from: ['rejected'], patch: { state: 'staged' } }),
      ledger.move({ id: two?.id ?? 0, from: ['staged'], patch: { state: 'done' } }),
    ])
    expect(failed).toMatchObject({ status: 'rejected', reason: { name: 'KeyHeldError' } })
    expect(moved).toMatchObject({ status: 'fulfilled', value: true })
    expect(await ledger.counts({ run: 'a' })).toMatchObject([{ state: 'done' }, { state: 'rejected' }])
  })

  test('a key is held by every change that is neither rejected nor dropped, over all runs', async () => {
    const ledger = await open()
    await ledger.stage(of('a', [change(1, 'K')]))
    const held = async (run: string) =>
      (await ledger.stage(of(run, [change(1, 'K')]))).held.map(({ by }) => by.run)
    expect(await held('b')).toEqual(['a'])
    const id = await idOf(ledger, 'a', 1)
    for (const state of ['sending', 'unknown', 'parked', 'done'] as const) {
      await ledger.move({ id, from: ['staged', 'sending', 'unknown', 'parked'], patch: { state } })
      expect(await held('b')).toEqual(['a'])
    }
    await ledger.move({ id, from: ['done'], patch: { state: 'rejected' } })
    expect(await held('b')).toEqual([])
    await expect(ledger.move({ id, from: ['rejected'], patch: { state: 'staged' } })).rejects.toBeInstanceOf(
      KeyHeldError,
    )
  })

  test('the same key in another workspace, mode or kind is another key', async () => {
    const ledger = await open()
    await ledger.stage(of('a', [change(1, 'K')]))
    const others = [{ workspace: 'acc_2' }, { mode: 'test' as const }, { kind: 'create-addon' }]
    for (const [index, other] of others.entries()) {
      const result = await ledger.stage({ ...of(`b${index}`, [change(1, 'K')]), ...other })
      expect(result).toMatchObject({ staged: 1, held: [] })
    }
  })

  test('a done key is staged once more only where the kind or a person says so', async () => {
    const ledger = await open()
    await ledger.stage(of('a', [change(1, 'K')]))
    const id = await idOf(ledger, 'a', 1)
    await ledger.move({ id, from: ['staged'], patch: { state: 'done' } })
    const ifOther = (done: string, other: string) => done !== other
    const tries: [Repeats, NewChange, number][] = [
      ['never', { ...change(1, 'K'), body: '{"other":1}' }, 0],
      [ifOther, change(1, 'K'), 0],
      [ifOther, { ...change(1, 'K'), body: '{"other":1}' }, 1],
      ['always', change(1, 'K'), 1],
      ['never', { ...change(1, 'K'), sendAgain: true }, 1],
    ]
    for (const [index, [repeats, again, staged]] of tries.entries()) {
      const run = `b${index}`
      expect(await ledger.stage(of(run, [again], repeats))).toMatchObject({ staged })
      const row = await ledger.row({ run, row: 1 })
      if (row) await ledger.move({ id: row.id, from: ['staged'], patch: { state: 'done' } })
    }
    await ledger.stage(of('c', [{ ...change(1, 'K'), sendAgain: true }]))
    await expect(ledger.move({ id, from: ['done'], patch: { state: 'unknown' } })).rejects.toBeInstanceOf(
      KeyHeldError,
    )
    for (const repeats of ['never', ifOther, 'always'] as const) {
      const again = { ...change(1, 'K'), body: '{"third":1}', sendAgain: true }
      const { held } = await ledger.stage(of('d', [again], repeats))
      expect(held.map(({ by }) => by.run)).toEqual(['c'])
    }
    const generations = (await ledger.holders({ ...space, keys: ['K'] })).map(({ generation }) => generation)
    expect(generations).toEqual([0, 1, 2, 3, 4])
  })

  test('what is done is staged once more after a later change of its key that may have been sent and was dropped', async () => {
    const ledger = await open()
    const ifOther = (done: string, other: string) => done !== other
    const stage = (run: string, body: string) => ledger.stage(of(run, [{ ...change(1, 'K'), body }], ifOther))
    const end = async (run: string, state: 'done' | 'dropped', sends: number) => {
      const id = await idOf(ledger, run, 1)
      await ledger.move({ id, from: ['staged'], patch: { state, sends } })
    }
    await stage('a', '{"name":"first"}')
    await end('a', 'done', 1)
    await stage('b', '{"name":"other"}')
    await end('b', 'dropped', 0)
    expect(await stage('c', '{"name":"first"}')).toMatchObject({ staged: 0 })
    await stage('d', '{"name":"other"}')
    await end('d', 'dropped', 1)
    expect(await stage('e', '{"name":"first"}')).toMatchObject({ staged: 1 })
    await end('e', 'done', 1)
    expect(await stage('f', '{"name":"first"}')).toMatchObject({ staged: 0 })
  })

  test('a change that gives its key free lets another take it, and is counted on where it stands', async () => {
    const ledger = await open()
    await ledger.stage(of('a', [change(1, 'K')]))
    const id = await idOf(ledger, 'a', 1)
    await ledger.move({
      id,
      from: ['staged'],
      patch: { state: 'parked', holdsKey: 0, outcome: 'used up' },
    })
    expect((await ledger.stage(of('b', [change(1, 'K')]))).staged).toBe(1)
    expect(await ledger.counts({ run: 'a' })).toEqual([
      {
        state: 'parked',
        outcome: 'used up',
        breakerKey: '',
        number: 1,
        tried: 0,
        refused: 0,
        failing: 0,
        withId: 0,
        resolved: 0,
      },
    ])
  })

  test('remembers how often a key was sent with a possible effect, over runs, as its last change counts it', async () => {
    const ledger = await open()
    const send = async (
      run: string,
      state: 'done' | 'parked' | 'rejected',
      sentAt: number,
      { before = 0, ...more }: { before?: number; sends?: number } = {},
    ) => {
      await ledger.stage(of(run, [{ ...change(1, 'K'), attemptsBefore: before }], 'always'))
      const claimed = await claimRow(ledger, run, 1, sentAt)
      const patch = { state, answer: `"seen by ${run}"`, holdsKey: state === 'done' ? 1 : 0, ...more }
      await ledger.move({ id: claimed?.id ?? 0, from: ['sending'], patch })
    }
    const history = async () => (await ledger.history({ ...space, keys: ['K', 'L'] })).get('K')
    expect(await history()).toBeUndefined()
    await send('a', 'parked', 10)
    expect(await history()).toMatchObject({ attempts: 1, lastSentAt: 10, run: 'a', answer: '"seen by a"' })
    await send('b', 'parked', 20, { before: 1 })
    expect(await history()).toMatchObject({ attempts: 2, lastSentAt: 20, run: 'b', answer: '"seen by b"' })
    await send('c', 'rejected', 30, { before: 2 })
    const refused = { attempts: 2, lastSentAt: 20, run: 'b' }
    expect(await history(), 'what was refused has done nothing').toMatchObject(refused)
    await send('d', 'done', 40, { before: 2, sends: 0 })
    expect(await history(), 'what was refused as done already, too').toMatchObject(refused)
    await send('e', 'done', 50, { before: 2 })
    expect(await history(), 'what lasted may fall again').toMatchObject({
      attempts: 3,
      lastSentAt: 50,
      run: 'e',
    })
  })

  test('gives all rows page by page while claims are written', async () => {
    const ledger = await open()
    await ledger.stage(
      of(
        'r',
        Array.from({ length: 1201 }, (_, index) => change(index + 1)),
      ),
    )
    const sender = await senderOf(ledger, 'r')
    const seen: number[] = []
    for await (const row of ledger.rows({ run: 'r' })) {
      seen.push(row.row)
      if (row.row % 400 === 0) await ledger.claim({ sender, id: row.id, sends: 0, at: 1 })
    }
    expect(seen).toEqual(Array.from({ length: 1201 }, (_, index) => index + 1))
    const claimed = (await Array.fromAsync(ledger.rows({ run: 'r' }))).filter(({ claims }) => claims > 0)
    expect(claimed).toHaveLength(3)
  })

  test('a claim under the right of an earlier sender fails, and changes nothing', async () => {
    const ledger = await open()
    await ledger.stage(of('r', changes(1, 2)))
    await ledger.stage(of('other', [change(3)]))
    const take = (run: string) => takeRight(ledger, run, 5)
    const [first, other] = [await take('r'), await take('other')]
    const ids = [await idOf(ledger, 'r', 1), await idOf(ledger, 'r', 2), await idOf(ledger, 'other', 3)]
    const claim = (sender: FencingToken, id = 0) => ledger.claim({ sender, id, sends: 0, at: 6 })
    expect(await claim(first, ids[0])).toMatchObject({ state: 'sending' })
    const second = await take('r')
    expect(second.token).not.toBe(first.token)
    expect(await ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'unknown', unknownSince: 5 })
    const together = await Promise.allSettled([
      claim(first, ids[1]),
      claim(other, ids[2]),
      claim(second, ids[1]),
    ])
    expect(together).toMatchObject([
      { status: 'rejected', reason: expect.any(SupersededError) },
      { status: 'fulfilled', value: { run: 'other', state: 'sending' } },
      { status: 'fulfilled', value: { run: 'r', state: 'sending', claims: 1 } },
    ])
    expect(await claim(other, ids[1]), 'a change of another run').toBeUndefined()
  })

  test('a move that needs the right to send fails once another sender has it, and changes nothing', async () => {
    const ledger = await open()
    await ledger.stage(of('r', changes(1, 2)))
    const first = await takeRight(ledger, 'r')
    const second = await takeRight(ledger, 'r')
    const move = (sender: FencingToken, id: number) =>
      ledger.move({ id, from: ['staged'], sender, patch: { state: 'parked', outcome: 'byHand' } })
    const ids = [await idOf(ledger, 'r', 1), await idOf(ledger, 'r', 2)] as const
    expect(await Promise.allSettled([move(first, ids[0]), move(second, ids[1])])).toMatchObject([
      { status: 'rejected', reason: expect.any(SupersededError) },
      { status: 'fulfilled', value: true },
    ])
    expect(await ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'staged' })
    expect(await ledger.row({ run: 'r', row: 2 })).toMatchObject({ state: 'parked' })
  })

  test('of changes claimed together, those that are no longer staged are left out', async () => {
    const ledger = await open()
    await ledger.stage(of('r', changes(1, 2, 3)))
    const sender = await takeRight(ledger, 'r')
    const ids = [await idOf(ledger, 'r', 1), await idOf(ledger, 'r', 2), await idOf(ledger, 'r', 3)]
    await ledger.move({ id: ids[1]!, from: ['staged'], patch: { state: 'dropped' } })
    const claims = ids.map((id) => ledger.claim({ sender, id, sends: 0, at: 6 }))
    expect((await Promise.all(claims)).map((claimed) => claimed?.row)).toEqual([1, undefined, 3])
  })
}
