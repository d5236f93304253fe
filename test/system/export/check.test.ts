import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { checkAll } from '../check/findings.ts'
import { callCommand } from '../command-line/call-command.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import {
  createNamespace,
  createWorld,
  openTestWorker,
  openWorld,
  workerListens,
  type World,
} from './world.ts'

// In `default`, runs of other tests may wait for their worker.
let temporal: Awaited<ReturnType<typeof createNamespace>>
let world: World
let worker: RunningWorker

beforeAll(async () => {
  temporal = await createNamespace()
  const counts = { customers: 200, subscriptions: 120, plans: 5, retentions: 100 }
  world = await openWorld({ counts }, temporal)
  worker = await openTestWorker(world)
  await workerListens(world)
})
afterAll(async () => {
  await worker.stop()
  await world.close()
})

describe('check', () => {
  test('says that all is in place, and what each list lets a read prove', async () => {
    const { code, wrong, findings } = await checkAll(world)
    expect(wrong).toEqual([])
    expect(code).toBe(0)
    expect(findings.map(({ check }) => check)).toEqual([
      'service',
      'customers',
      'subscriptions',
      'plans',
      'retentions',
      'temporal',
      'data folder',
    ])
  })

  test(
    'exits 0 if only a running server is missing, and lists settings only with --all',
    { tags: ['long'] },
    async () => {
      const idle = await createWorld({ counts: { plans: 5, customers: 5 } }, temporal)
      const { code, findings } = await checkAll(idle, { TEMPORAL_ADDRESS: '' })
      expect(code).toBe(0)
      expect(findings).toContainEqual({
        check: 'temporal',
        status: 'notRunning',
        message:
          'No Temporal server is running. Start one with `npx connector up`, or start jobs with --local.',
      })
      const shown = async (...words: string[]) => (await callCommand(idle, ['check', ...words])).stdout
      expect(await shown()).not.toContain('BILLING_BASE_URL')
      expect(await shown('--all')).toMatch(/^ok .*[^]*\n\nvariable .*[^]*BILLING_BASE_URL/m)
    },
  )

  test.each([
    ['token', { BILLING_TOKEN: 'wrong' }, 'service', 'does not accept the token'],
    ['workspace', { BILLING_WORKSPACE: 'acc_other' }, 'service', 'check the workspace'],
    [
      'Temporal',
      { TEMPORAL_ADDRESS: '127.0.0.1:1' },
      'temporal',
      'Start that server, correct TEMPORAL_ADDRESS, or start jobs with --local.',
    ],
    ['address', { BILLING_BASE_URL: 'http://127.0.0.1:1' }, 'service', 'check the address'],
  ])('names the wrong %s', async (_, env, name, message) => {
    const { code, wrong, ms } = await checkAll(world, env)
    expect(code).toBe(1)
    expect(wrong).toContainEqual({
      check: name,
      status: 'wrong',
      message: expect.stringContaining(message),
    })
    expect(ms).toBeLessThan(20_000)
  })

  test('names another data folder than the worker’s', async () => {
    const other = await mkdtemp(join(tmpdir(), 'other-'))
    onTestFinished(() => rm(other, { recursive: true, force: true }))
    const { code, wrong } = await checkAll(world, { CONNECTOR_DATA_DIR: other })
    expect(code).toBe(1)
    expect(wrong).toEqual([
      {
        check: 'temporal',
        status: 'wrong',
        message: expect.stringContaining('Give both the same CONNECTOR_DATA_DIR'),
      },
    ])
  })

  test('names a data folder that takes no files', async () => {
    const { code, wrong } = await checkAll(world, { CONNECTOR_DATA_DIR: '/dev/null/data' })
    expect(code).toBe(1)
    expect(wrong).toContainEqual({
      check: 'data folder',
      status: 'wrong',
      message: expect.stringMatching(/can't be written: .*CONNECTOR_DATA_DIR/),
    })
  })

  test('says what incremental exports of a list do not see', async () => {
    const { findings } = await checkAll(world)
    expect(findings).toContainEqual({
      check: 'customers',
      status: 'ok',
      message: expect.stringContaining('does not see a change of contacts or aggregations'),
    })
  })

  test('names each list whose order or mode is not honoured', async () => {
    const lists = {
      customers: { orderings: [] },
      subscriptions: { orderings: ['created'], defaultOrdering: 'id' },
      retentions: { orderings: ['created', '-created'] },
    }
    const counts = { customers: 200, plans: 5 }
    const testCounts = { customers: 10 }
    const odd = await createWorld({ counts, testCounts, honoursTestMode: false, lists }, temporal)
    const live = await checkAll(odd)
    const findingOf = (name: string) => live.findings.find((finding) => finding.check === name)
    expect(findingOf('customers')).toMatchObject({
      status: 'wrong',
      message: expect.stringContaining('can be proven'),
    })
    expect(findingOf('subscriptions')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('-created'),
    })
    expect(findingOf('retentions')).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('incremental'),
    })
    const { wrong } = await checkAll(odd, { BILLING_TEST_MODE: 'true' })
    expect(wrong).toContainEqual({
      check: 'retentions',
      status: 'wrong',
      message: expect.stringContaining('ignores the test-mode header'),
    })
  })
})
