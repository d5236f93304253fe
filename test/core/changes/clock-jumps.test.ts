import { expect, onTestFinished, test, vi } from 'vitest'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { requestsOf, retentionRows, startRun } from './engine.ts'

const settleMs = 60_000
const hourMs = 3_600_000

test.each([
  ['is set an hour ahead', hourMs],
  ['is set an hour back', -hourMs],
])(
  'a clock that %s while a row without an answer waits neither shortens nor prolongs its wait',
  async (_, by) => {
    const { now } = Date
    let off = 0
    vi.spyOn(Date, 'now').mockImplementation(() => now() + off)
    onTestFinished(() => void vi.restoreAllMocks())
    const faults = [{ kind: 'reset', effect: 'none', on: 'POST /retentions/', requests: [2] }] as const
    const { engine, sandbox } = await startRun(changeKinds['create-retention'], retentionRows(2), {
      concurrency: 1,
      settleMs,
      faults: [...faults],
    })
    const first = await engine.segment()
    const asked = requestsOf(sandbox, 'GET').length
    off = by
    const second = await engine.segment()
    expect(requestsOf(sandbox, 'GET')).toHaveLength(asked)
    expect(await engine.rows()).toMatchObject([{ state: 'done' }, { state: 'unknown', lookups: 0 }])
    const waits = [first, second].map(({ nextAt = 0, endedAt }) => nextAt - endedAt)
    // Times follow the clock by a second now and then.
    for (const wait of waits) expect(Math.abs(wait - settleMs)).toBeLessThan(5_000)
  },
)
