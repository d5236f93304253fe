import { describe, expect, it } from 'vitest'
import { parseTimestamp } from '../../sandbox/data/times.ts'
import { start } from './client.ts'

describe('drift by request', () => {
  it('comes after each request of the list, and of no other', async () => {
    const { get, sandbox } = await start({ drift: { customers: { perRequest: { deletes: 2, inserts: 1 } } } })
    const counts: number[] = []
    for (let read = 0; read < 3; read++) {
      counts.push((await get('/customers/')).json.count)
      await get('/plans/')
    }
    expect(counts).toEqual([1000, 999, 998])
    expect(sandbox.control.effects().map(({ by, effect }) => `${by} ${effect}`)).toEqual(
      Array.from({ length: 3 }, () => ['drift delete', 'drift delete', 'drift create']).flat(),
    )
  })

  it('is the same for the same seed', async () => {
    const run = async (seed: number) => {
      const { get, sandbox } = await start({
        seed,
        drift: { customers: { perRequest: { deletes: 1, updates: 1, restores: 1 } } },
      })
      for (let read = 0; read < 20; read++) await get('/customers/')
      return sandbox.control.effects().map(({ effect, id }) => `${effect} ${id}`)
    }
    const [one, same, other] = [await run(5), await run(5), await run(6)]
    expect(same).toEqual(one)
    expect(other).not.toEqual(one)
  })

  it('makes a reader of pages lose records that were there throughout', async () => {
    const { walk, sandbox } = await start({
      tieOrder: 'stable',
      drift: { customers: { perRequest: { deletes: 5 } } },
    })
    const since = sandbox.control.mark()
    const read = new Set(await walk('/customers/?ordering=created&page_size=100'))
    const throughout = sandbox.control.ids({ resource: 'customers', since })
    expect(throughout.length).toBe(sandbox.control.ids({ resource: 'customers' }).length)
    expect(throughout.filter((id) => !read.has(id)).length).toBeGreaterThan(5)
  })
})

describe('drift told to', () => {
  it('deletes, inserts, updates, commits late and restores into the middle', async () => {
    const { sandbox, rows } = await start({ counts: { customers: 100 }, tieOrder: 'stable' })
    const { control } = sandbox
    const before = control.ids({ resource: 'customers' })
    const from = Date.now()
    const { deletes, inserts, updates, lateCommits } = control.drift({
      resource: 'customers',
      deletes: 10,
      inserts: 2,
      updates: 3,
      lateCommits: 2,
      lateBySeconds: 3600,
    })
    expect([deletes.length, inserts.length, updates.length, lateCommits.length]).toEqual([10, 2, 3, 2])
    const now = control.ids({ resource: 'customers' })
    expect(now.filter((id) => deletes.includes(id))).toEqual([])
    expect(now).toHaveLength(94)
    const newest = await rows('/customers/?ordering=-created&page_size=4')
    const late = newest.find((row) => row.id === lateCommits[0])
    expect((parseTimestamp(late?.created) ?? 0) / 1000).toBeLessThan(from - 1000)
    expect(new Set(newest.map((row) => row.id))).toEqual(new Set([...inserts, ...lateCommits]))

    const { restores } = control.drift({ resource: 'customers', restores: 99 })
    expect(new Set(restores)).toEqual(new Set(deletes))
    const back = control.ids({ resource: 'customers' })
    expect(back.filter((id) => before.includes(id))).toEqual(before)
  })
})

describe('drift by the clock', () => {
  it('keeps its rates, and ends when it is set to nothing', async () => {
    const { sandbox } = await start({ counts: { customers: 5000 } })
    const { control } = sandbox
    const from = performance.now()
    control.setDrift({ drift: { customers: { perSecond: { deletes: 200, inserts: 100 } } } })
    await expect.poll(() => control.effects().length, { interval: 20 }).toBeGreaterThan(150)
    const seconds = (performance.now() - from) / 1000
    control.setDrift({ drift: {} })
    const done = control.effects()
    const deletes = done.filter(({ effect }) => effect === 'delete').length
    expect(deletes / done.length).toBeCloseTo(2 / 3, 1)
    // 300 changes a second, give or take the ticks of 20 ms at both ends.
    expect(done.length).toBeLessThanOrEqual(300 * (seconds + 0.1))
    const mark = control.mark()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(control.mark()).toBe(mark)
  })
})
