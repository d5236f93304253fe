import type { Client } from '@temporalio/client'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createTroubleSignals, type TroubleNote } from '../../activities/tell-trouble.ts'

const minute = 60_000

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
})

test('a service that asks for a pause every minute costs a step of nine minutes two signals, and a token that is waited for is told at once', async () => {
  const notes: TroubleNote[] = []
  const handle = { signal: async (_: string, note: TroubleNote) => void notes.push(note) }
  const client = { workflow: { getHandle: () => handle } } as unknown as Client
  const run = { workflowId: 'nightly', runId: 'r' }
  const signals = createTroubleSignals({ client, run, step: '1', resource: 'customers', before: undefined })
  for (; Date.now() < 9 * minute; vi.advanceTimersByTime(1_000)) {
    const since = Date.now() - (Date.now() % minute)
    const until = since + 50_000
    const pause = { asked: until, until }
    await signals.see(Date.now() < until ? { what: 'answers 429', since, failures: 1, pause } : undefined)
  }
  expect(notes).toHaveLength(2)
  const refused = { what: 'refuses the token', since: Date.now(), failures: 1, tokenUntil: 11 * minute }
  await signals.see(refused)
  expect(notes.at(-1)).toMatchObject({ trouble: refused })
})
