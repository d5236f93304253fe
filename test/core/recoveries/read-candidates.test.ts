import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readCandidates } from '../../../core/recoveries/candidates.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import { openState } from '../../../core/state/open.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'
import type { Billing, BillingSettings } from '../../../core/billing/client.ts'

const maxPages = 20
const counts = { subscriptions: 400, customers: 20, plans: 3 }
const broken = { kind: 'error', status: 503, html: true } as const

async function openSnapshot(faults: SandboxOptions['faults'], settings: Partial<BillingSettings> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'connector-snapshot-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const sandbox = await startSandbox({ counts, needsAttention: 1, ...(faults && { faults }) })
  const billing = clientOf(sandbox, settings)
  const state = await openState({ folder })
  onTestFinished(() => state.close())
  const notes = createRunNotes(state)
  const read = (pages = maxPages, by: Billing = billing) =>
    readCandidates({
      run: 'run',
      notes,
      billing: by,
      testMode: false,
      readLagMs: 60_000,
      maxPages: pages,
      signal: new AbortController().signal,
    })
  return { sandbox, billing, read, asked: () => sandbox.control.requests().length }
}

test('maxPages bounds the requests of all tries of a snapshot together, and the report says that failures used it up', async () => {
  const { read, asked } = await openSnapshot([broken])
  await expect(read()).rejects.toThrow('503')
  await expect(read()).rejects.toThrow('503')
  expect(asked()).toBe(16)
  const ended = await read()
  expect(asked()).toBe(20)
  expect(ended).toMatchObject({ capped: true, proven: false, requests: 20, candidates: [] })
  expect(ended.reasons).toEqual([
    'maxPages (20) was used up before the end of the list; requests that failed count, too',
  ])
  expect(await read(), 'the end is kept').toEqual(ended)
  expect(asked()).toBe(20)
})

test('where maxPages is used up, the report also says what else was wrong with the list', async () => {
  const { read } = await openSnapshot([{ kind: 'ignoreOrdering' }])
  expect((await read(8)).reasons).toEqual([
    'maxPages (8) was used up before the end of the list; requests that failed count, too',
    expect.stringContaining('is not honoured'),
  ])
})

test('where pages have a fixed size, the snapshot has all candidates and proves nothing', async () => {
  const { read } = await openSnapshot([{ kind: 'pageSize', cap: 250, fixed: true }])
  const ended = await read()
  expect(ended).toMatchObject({ proven: false, capped: false })
  expect(ended.reasons).toEqual([expect.stringContaining('does not follow the page size')])
  expect(ended.candidates).toHaveLength(400)
})

test('a request that failed counts as failed before it would be sent again', async () => {
  const { read } = await openSnapshot([{ ...broken, requests: [2, 3] }])
  expect((await read(3)).reasons).toEqual([
    'maxPages (3) was used up before the end of the list; requests that failed count, too',
  ])
})

test('a request counts against maxPages before it leaves, so that a kill forgets none', async () => {
  const { read, billing } = await openSnapshot([])
  const killed: Billing = {
    ...billing,
    async list({ beforeSend }) {
      await beforeSend?.()
      throw new Error('killed')
    },
  }
  await expect(read(3, killed)).rejects.toThrow('killed')
  await expect(read(3, killed)).rejects.toThrow('killed')
  expect(await read(3)).toMatchObject({
    capped: true,
    requests: 3,
  })
})

test('a list that failed at first is read whole within maxPages', async () => {
  const { read, asked } = await openSnapshot([{ ...broken, to: 9 }])
  await expect(read()).rejects.toThrow('503')
  const ended = await read()
  expect(ended).toMatchObject({ proven: true, capped: false, requests: asked() })
  expect(ended.candidates).toHaveLength(400)
})

test('a request whose token was renewed in the meantime counts twice, because two requests left', async () => {
  const { sandbox, read, asked } = await openSnapshot([{ kind: 'expireToken', next: 'renewed' }], {
    token: async () => tokens.shift() ?? 'renewed',
  })
  const tokens = [sandbox.token]
  await expect(read(1)).resolves.toMatchObject({ capped: true, requests: 1 })
  expect(asked()).toBe(1)
})
