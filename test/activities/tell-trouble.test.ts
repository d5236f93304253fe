import type { Client } from '@temporalio/client'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createTroubleSignals, type TroubleNote } from '../../activities/tell-trouble.ts'

const minute = 60_000

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
})

function open() {
  const notes: TroubleNote[] = []
  const handle = { signal: async (_: string, note: TroubleNote) => void notes.push(note) }
  const client = { workflow: { getHandle: () => handle } } as unknown as Client
  const run = { workflowId: 'nightly', runId: 'r' }
  const signals = createTroubleSignals({ client, run, step: '1', resource: 'customers', before: undefined })
  return { notes, signals }
}

/** The pause of a service that asks for 50 s of every minute. */
function pauseNow() {
  const since = Date.now() - (Date.now() % minute)
  const until = since + 50_000
  return { what: 'answers 429', since, failures: 1, pause: { asked: until, until } }
}

test('a service that asks for a pause every minute costs a step of nine minutes two signals, and a token that is waited for is told at once', async () => {
  const { notes, signals } = open()
  for (; Date.now() < 9 * minute; vi.advanceTimersByTime(1_000)) {
    const trouble = pauseNow()
    await signals.see(Date.now() < trouble.pause.until ? trouble : undefined)
  }
  expect(notes).toHaveLength(2)
  const refused = { what: 'refuses the token', since: Date.now(), failures: 1, tokenUntil: 11 * minute }
  await signals.see(refused)
  expect(notes.at(-1)).toMatchObject({ trouble: refused })
})

test('a service that never answers between its pauses is shown with the present one', async () => {
  const { notes, signals } = open()
  for (; Date.now() < 4 * minute; vi.advanceTimersByTime(1_000)) await signals.see(pauseNow())
  expect(notes.map(({ trouble }) => trouble?.pause?.until)).toEqual([50_000, 110_000, 170_000, 230_000])
})
