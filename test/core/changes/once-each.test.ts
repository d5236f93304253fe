/** The check that every row is there exactly once, and that the check would notice if it were not. */
import { expect, test } from 'vitest'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { ReportCounts } from '../../../core/runs/view/counts.ts'
import { copies, retentionRows, startRun } from './engine.ts'

const seed = 7
const count = 80
const slow = { timeout: 120_000 }
const kind = changeKinds['create-retention']

async function sendWithFaults(kind: ChangeKind) {
  const on = 'POST /retentions/'
  return await startRun(kind, retentionRows(count), {
    seed,
    faults: [
      { kind: 'reset', effect: 'done', rate: 0.1, on },
      { kind: 'reset', effect: 'none', rate: 0.1, on },
    ],
  })
}

/** Rows that are there more than once, and rows that are called done and are not there. */
async function check({ engine, sandbox }: Awaited<ReturnType<typeof sendWithFaults>>) {
  const made = copies(sandbox, 'retentions', 'number')
  const rows = await engine.rows()
  const times = ({ row }: { row: number }) => made.get(String(row)) ?? 0
  return {
    doubles: rows.filter((row) => times(row) > 1).length,
    losses: rows.filter((row) => row.state === 'done' && times(row) === 0).length,
    done: rows.filter((row) => row.state === 'done').length,
  }
}

test(
  `each of ${count} retentions is there once although a fifth of the replies are lost (seed ${seed})`,
  slow,
  async () => {
    const world = await sendWithFaults(kind)
    await world.engine.finish()
    const { doubles, losses, done } = await check(world)
    expect({ doubles, losses }).toEqual({ doubles: 0, losses: 0 })
    expect(done).toBeGreaterThan(count * 0.97)
  },
)

test('a sender that repeats blindly makes doubles, and the check sees them', slow, async () => {
  const world = await sendWithFaults({ ...kind, whenUnknown: () => 'sendAgain' })
  await world.engine.finish()
  expect((await check(world)).doubles).toBeGreaterThan(3)
})

test('a sender that takes a lost reply for done loses rows, and the check sees them', slow, async () => {
  const world = await sendWithFaults(kind)
  const { engine } = world
  await engine.send()
  for (const row of await engine.rows())
    await engine.ledger.move({ id: row.id, from: ['unknown'], patch: { state: 'done' } })
  expect((await check(world)).losses).toBeGreaterThan(3)
})

test('reconciling by the first lookup doubles rows that take effect late', slow, async () => {
  const on = 'POST /retentions/'
  const { sandbox, engine } = await startRun(kind, retentionRows(4), {
    faults: [{ kind: 'lateEffect', seconds: 60, on, requests: [3] }],
    settleMs: 1,
    concurrency: 1,
  })
  await engine.finish()
  sandbox.control.landLateEffects()
  expect((await check({ engine, sandbox })).doubles).toBe(1)
})

test('an error beside the sending ends it, and rows that have left are recorded', async () => {
  const { engine } = await startRun(kind, retentionRows(9), { concurrency: 2 })
  const onProgress = ({ done }: ReportCounts) => {
    if (done > 0) throw new Error('nobody listens')
  }
  await expect(engine.send({ onProgress })).rejects.toThrow('nobody listens')
  const states = (await engine.rows()).map(({ state }) => state)
  expect(new Set(states)).toEqual(new Set(['done', 'staged']))
  expect(await engine.finish()).toBe('finished')
})
