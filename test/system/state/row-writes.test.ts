import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { sendWithinMs } from '../../../core/billing/transport.ts'
import { takeRight as takeSendRight } from '../../../core/changes/send/send-right.ts'
import { SupersededError, isStateAway } from '../../../core/state/errors.ts'
import { openState, type State } from '../../../core/state/open.ts'
import { leaseOf, senderOf, takeRight } from '../../core/state/sender-of.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'

/** Claims and answers on PostgreSQL: one statement each, which is a transaction of its own. */
let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

let made = 0
const newSchema = () => `connector_acc_${++made}`

async function open({ schema = newSchema(), at = url }: { schema?: string; at?: string } = {}) {
  const state = await openState({ folder: await temporaryFolder(), database: { url: at, schema } })
  onTestFinished(() => state.close())
  return { ...state, schema, db: state.shared!.db }
}

async function stage({ ledger }: Pick<State, 'ledger'>, rows: number, run = 'r') {
  const changes = Array.from({ length: rows }, (_, index) => ({
    row: index + 1,
    key: `${run} ${index}`,
    body: '{}',
  }))
  const space = { workspace: 'acc_1', mode: 'live', kind: 'create-addon' } as const
  await ledger.stage({ ...space, run, repeats: 'never', changes })
  const sender = await senderOf(ledger, run)
  return { sender, ids: (await Array.fromAsync(ledger.rows({ run }))).map(({ id }) => id) }
}

/** A transaction that stays open until it is ended. */
async function hold(db: Awaited<ReturnType<typeof open>>['db'], statement: string) {
  const [isHeld, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ended = db.transaction().execute(async (transaction) => {
    await sql.raw(statement).execute(transaction)
    isHeld.resolve()
    await end.promise
  })
  await isHeld.promise
  return async () => {
    end.resolve()
    await ended
  }
}

/** When so many claims or moves wait for a lock. */
const waiting = `from pg_stat_activity where wait_event_type = 'Lock' and query like 'update "%"changes"%'`
async function untilWaiting(number = 1): Promise<void> {
  while (((await askPostgres(url, `select pid ${waiting}`))?.length ?? 0) < number) await Promise.resolve()
}

test('a move that waited for another transaction keeps what that one wrote in other columns', async () => {
  const { ledger, db, schema } = await open()
  const { ids } = await stage({ ledger }, 1)
  const [id = 0] = ids
  const release = await hold(db, `update ${schema}.changes set error = 'theirs', lookups = 3`)
  const moved = ledger.move({ id, from: ['staged'], claims: 0, patch: { outcome: 'mine' } })
  await untilWaiting()
  await release()
  expect(await moved).toBe(true)
  expect(await ledger.byId({ id })).toMatchObject({ error: 'theirs', lookups: 3, outcome: 'mine' })
})

test('a move and a claim that waited for another transaction find the change as that one left it', async () => {
  const { ledger, db, schema } = await open()
  const { ids, sender } = await stage({ ledger }, 2)
  const [id = 0, other = 0] = ids
  const release = await hold(db, `update ${schema}.changes set state = 'parked', claims = 5`)
  const moved = ledger.move({ id, from: ['staged'], patch: { state: 'dropped' } })
  const claimed = ledger.claim({ sender, id: other, sends: 0, at: 1 })
  await untilWaiting()
  await release()
  expect(await moved).toBe(false)
  expect(await claimed).toBeUndefined()
  expect(await Array.fromAsync(ledger.rows({ run: 'r' }))).toMatchObject([
    { state: 'parked' },
    { state: 'parked' },
  ])
})

test('a row that an answer has just made done stays so when all rows of its state are moved', async () => {
  const { ledger, db, schema } = await open()
  await stage({ ledger }, 1)
  const release = await hold(db, `update ${schema}.changes set state = 'done'`)
  const moved = ledger.moveAll({ run: 'r', from: 'staged', patch: { state: 'dropped' } })
  await untilWaiting()
  await release()
  expect(await moved).toBe(0)
  expect(await ledger.row({ run: 'r', row: 1 })).toMatchObject({ state: 'done' })
})

test('a take-over that waits for a claim counts its waits from after that claim', async () => {
  const { ledger, db, schema, now } = await open()
  const { sender } = await stage({ ledger }, 1)
  const claim = `update ${schema}.changes set state = 'sending', claims = 1, sends = 1`
  const release = await hold(db, `update ${schema}.leases set token = '${sender.token}'; ${claim}`)
  const takingOver = takeSendRight({ ledger, run: 'r', lease: leaseOf('r') })
  await wait(1_000)
  const endedAt = now()
  await release()
  await takingOver
  const row = await ledger.row({ run: 'r', row: 1 })
  expect(row).toMatchObject({ state: 'unknown', outcome: 'interrupted' })
  expect(row?.unknownSince).toBeGreaterThanOrEqual(endedAt + sendWithinMs)
})

test('two workers that move the same changes at once, in opposite orders, make each move once', async () => {
  const first = await open()
  const second = await open(first)
  const { ids } = await stage(first, 40)
  // The first of each waits, so that both have begun.
  const release = await hold(
    first.db,
    `select 1 from ${first.schema}.changes where id in (${ids[0]}, ${ids.at(-1)}) for update`,
  )
  const moveAll = ({ ledger }: State, order: number[]) =>
    order.map((id) => ledger.move({ id, from: ['staged'], patch: { state: 'dropped' } }))
  const moves = [...moveAll(first, ids), ...moveAll(second, ids.toReversed())]
  await untilWaiting(2)
  await release()
  const made = await Promise.all(moves)
  expect(made.filter(Boolean)).toHaveLength(40)
})

test.for(['read committed', 'repeatable read', 'serializable'])(
  'claims and answers of several runs at once are each made once, and none under a lost right, where the user’s transactions are %s',
  async (isolation) => {
    const name = new URL(url).pathname.slice(1)
    await askPostgres(url, `alter database ${name} set default_transaction_isolation = '${isolation}'`)
    onTestFinished(
      async () => void (await askPostgres(url, `alter database ${name} reset default_transaction_isolation`)),
    )
    const worker = await open()
    const { ledger } = worker
    const runs = ['a', 'b', 'c']
    const sendAll = async (run: string) => {
      const { ids, sender } = await stage(worker, 60, run)
      const sent = ids.map(async (id) => {
        const claimed = await ledger.claim({ sender, id, sends: 0, at: 1 })
        const moved = await ledger.move({ id, from: ['sending'], claims: 1, patch: { state: 'done' } })
        return claimed !== undefined && moved
      })
      return await Promise.all(sent)
    }
    expect((await Promise.all(runs.map(sendAll))).flat().filter(Boolean)).toHaveLength(180)
    const { ids, sender } = await stage(worker, 1)
    const release = await hold(
      worker.db,
      `update ${worker.schema}.leases set token = 'another' where name = 'test r'`,
    )
    const claimed = Promise.allSettled([ledger.claim({ sender, id: ids[0] ?? 0, sends: 0, at: 1 })])
    await untilWaiting()
    await release()
    expect(await claimed).toMatchObject([{ reason: expect.any(SupersededError) }])
    expect(await Array.fromAsync(ledger.rows({ run: 'r' }))).toMatchObject([{ state: 'staged', claims: 0 }])
    const end = await hold(worker.db, `update ${worker.schema}.changes set error = 'theirs' where run = 'r'`)
    const all = ledger.moveAll({ run: 'r', from: 'staged', patch: { state: 'dropped' } })
    await untilWaiting()
    await end()
    expect(await all).toBe(1)
  },
)

test('the claims of a run do not wait for another run whose right is being taken over', async () => {
  const worker = await open()
  const { ledger } = worker
  const [a, b] = [await stage(worker, 1, 'a'), await stage(worker, 1, 'b')]
  const release = await hold(
    worker.db,
    `select 1 from ${worker.schema}.leases where name = 'test a' for update`,
  )
  const ended: string[] = []
  const claim = (run: string, { ids: [id = 0], sender }: typeof a) =>
    ledger.claim({ sender, id, sends: 0, at: 1 }).finally(() => ended.push(run))
  const first = claim('a', a)
  await untilWaiting()
  const second = claim('b', b)
  await Promise.race([first.catch(() => undefined), second])
  expect(ended).toEqual(['b'])
  await release()
  await first
})

test('a claim that cannot be stored is not made, and hinders neither an answer nor another claim', async () => {
  const worker = await open()
  const { ledger } = worker
  const { ids, sender } = await stage(worker, 3)
  const [sent = 0, broken = 0, other = 0] = ids
  await ledger.claim({ sender, id: sent, sends: 0, at: 1 })
  const answered = ledger.move({ id: sent, from: ['sending'], patch: { state: 'done' } })
  const claims = [broken, other].map((id) =>
    ledger.claim({ sender, id, sends: 0, at: 1, ...(id === broken && { before: '\0' }) }),
  )
  const [refused, claimed] = await Promise.allSettled(claims)
  expect(await answered).toBe(true)
  expect(refused).toMatchObject({ reason: { name: 'StateFailedError' } })
  expect(claimed).toMatchObject({ value: { id: other, state: 'sending' } })
  expect(await ledger.byId({ id: broken })).toMatchObject({ state: 'staged', claims: 0 })
})

test('an answer is recorded after another attempt has taken the right, and no claim under the lost right is made', async () => {
  const worker = await open()
  const { ledger } = worker
  const { ids, sender } = await stage(worker, 4)
  const [sent = 0, ...others] = ids
  await ledger.claim({ sender, id: sent, sends: 0, at: 1 })
  const right = await takeRight(ledger, 'r')
  const [last = 0] = others.splice(-1)
  const writes = await Promise.allSettled([
    ledger.claim({ sender, id: others[0] ?? 0, sends: 0, at: 1 }),
    ledger.move({ id: sent, from: ['unknown'], patch: { state: 'done', answerId: 'x' } }),
    ledger.move({ id: others[1] ?? 0, sender, from: ['staged'], patch: { state: 'dropped' } }),
    // The new holder of the right in the same process.
    ledger.claim({ sender: right, id: last, sends: 0, at: 1 }),
  ])
  expect(writes).toMatchObject([
    { reason: expect.any(SupersededError) },
    { value: true },
    { reason: expect.any(SupersededError) },
    { value: { id: last, claims: 1 } },
  ])
  const states = (await Array.fromAsync(ledger.rows({ run: 'r' }))).map(({ state }) => state)
  expect(states).toEqual(['done', 'staged', 'staged', 'sending'])
})

test('a take-over and the answers and claims of the attempt before it never end each other, and leave no claim after it', async () => {
  const one = await open()
  const second = await open(one)
  for (let round = 0; round < 12; round += 1) {
    const run = `t${round}`
    const { ids, sender } = await stage(one, 12, run)
    const half = ids.slice(0, 6)
    for (const id of half) await one.ledger.claim({ sender, id, sends: 0, at: 1 })
    const work = Promise.allSettled([
      ...half.map((id) => one.ledger.move({ id, from: ['sending', 'unknown'], patch: { state: 'done' } })),
      ...ids.slice(6).map((id) => one.ledger.claim({ sender, id, sends: 0, at: 1 })),
    ])
    await takeRight(second.ledger, run)
    const results = await work
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(SupersededError)
    const rows = await Array.fromAsync(one.ledger.rows({ run }))
    expect(rows.slice(0, 6).map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'done'))
    // What was claimed before the take-over is unknown, and nothing is claimed after it.
    for (const { state } of rows.slice(6)) expect(['staged', 'unknown']).toContain(state)
  }
})

test('a take-over leaves no claim of the attempt before it, however many are being made at that moment', async () => {
  const worker = await open()
  const { ledger, db } = worker
  const { ids, sender: first } = await stage(worker, 1_200)
  let sender = first
  const tally = { claimed: 0, superseded: 0, takeOvers: 0, left: 0 }
  const claimAll = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop())
      try {
        if ((await ledger.claim({ sender, id, sends: 0, at: 1 })) !== undefined) tally.claimed += 1
      } catch (error) {
        expect(error).toBeInstanceOf(SupersededError)
        tally.superseded += 1
      }
  }
  const takeOver = async () => {
    while (ids.length > 0) {
      const fresh = await takeRight(ledger, 'r')
      // Nobody knows the new token yet: whatever is sending was claimed under the one before.
      const sending = await db.selectFrom('changes').select('id').where('state', '=', 'sending').execute()
      tally.left += sending.length
      tally.takeOvers += 1
      sender = fresh
      await wait(4)
    }
  }
  await Promise.all([takeOver(), ...Array.from({ length: 8 }, claimAll)])
  expect(tally).toMatchObject({ left: 0 })
  expect(Math.min(tally.claimed, tally.superseded, tally.takeOvers)).toBeGreaterThan(10)
})

/** In front of PostgreSQL: cuts each connection on which something is answered while `isLosing`. */
async function startLosingProxy() {
  const proxy = { isLosing: false, how: 'reset' as 'reset' | 'end', lost: 0 }
  const server = createServer((client) => {
    const upstream = connect(postgres.port, '127.0.0.1')
    const close = (socket: Socket) => () => socket.destroy()
    client.on('error', close(upstream)).on('close', close(upstream))
    upstream.on('error', close(client)).on('close', close(client))
    client.pipe(upstream)
    upstream.on('data', (data) => {
      if (!proxy.isLosing) return client.write(data)
      proxy.lost += 1
      return proxy.how === 'reset' ? client.resetAndDestroy() : client.end()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const at = new URL(url)
  at.port = `${port}`
  return Object.assign(proxy, { url: at.href })
}

test.for(['reset', 'end'] as const)(
  'a claim and an answer whose confirmation is lost with the connection (%s) are made, and the caller learns that the store is away',
  async (how) => {
    const proxy = await startLosingProxy()
    proxy.how = how
    const worker = await open({ at: proxy.url })
    const { ledger } = worker
    const { ids, sender } = await stage(worker, 1)
    const [id = 0] = ids
    const lose = async (write: () => Promise<unknown>) => {
      proxy.isLosing = true
      const [lost] = await Promise.allSettled([write()])
      proxy.isLosing = false
      expect(lost.status === 'rejected' && isStateAway(lost.reason)).toBe(true)
    }
    const claim = () => ledger.claim({ sender, id, sends: 0, at: 1 })
    await lose(claim)
    expect(await ledger.byId({ id })).toMatchObject({ state: 'sending', claims: 1 })
    expect(await claim()).toBeUndefined()
    const move = () => ledger.move({ id, from: ['sending'], claims: 1, sender, patch: { state: 'staged' } })
    await lose(move)
    expect(await ledger.byId({ id })).toMatchObject({ state: 'staged' })
    expect(await move()).toBe(false)
  },
)

test.for(['pg_cancel_backend', 'pg_terminate_backend'])(
  'a claim that %s ends while it waits claims nothing, and its caller learns that the store is away',
  async (end) => {
    const worker = await open()
    const { ledger } = worker
    const { ids, sender } = await stage(worker, 1)
    const [id = 0] = ids
    const release = await hold(worker.db, `select 1 from ${worker.schema}.changes for update`)
    const claim = Promise.allSettled([ledger.claim({ sender, id, sends: 0, at: 1 })])
    await untilWaiting()
    await askPostgres(url, `select ${end}(pid) ${waiting}`)
    const [ended] = await claim
    expect(ended.status === 'rejected' && isStateAway(ended.reason)).toBe(true)
    await release()
    expect(await ledger.byId({ id })).toMatchObject({ state: 'staged', claims: 0 })
  },
)

test('all rows of a large file are moved at once, although PostgreSQL does not know yet how many there are', async () => {
  const { ledger } = await open()
  await stage({ ledger }, 10_000)
  const started = performance.now()
  const moved = await ledger.moveAll({ run: 'r', from: 'staged', patch: { state: 'dropped' } })
  expect(moved).toBe(10_000)
  // Half a second; a comparison of each row with each took more than 20.
  expect(performance.now() - started).toBeLessThan(10_000)
})
