import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import type { Publication } from '../../../core/state/publications.ts'
import { publicationOf as note } from '../../core/exports/record-read.ts'
import { checkFresh } from '../../../scripts/checks/fresh.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import {
  connectTemporal,
  createNamespace,
  createWorld,
  openTestWorker,
  openWorld,
  startRun,
  workerListens,
  type World,
} from './world.ts'

interface Findings {
  findings: { check: string; status: string; message: string }[]
}

async function check(world: World, env: Record<string, string> = {}, ...words: string[]) {
  const { code, stdout, ms } = await callCommand(world, ['check', ...words, '--json'], { env })
  const { findings } = JSON.parse(stdout) as Findings
  return { code, ms, findings, wrong: findings.filter(({ status }) => status !== 'ok') }
}

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
    const { code, wrong, findings } = await check(world)
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
    for (const { message } of findings) expect(message).toMatch(/^[A-Z/].*\.$/)
  })

  test(
    'exits 0 if only a running server is missing, and lists settings only with --all',
    { tags: ['long'] },
    async () => {
      const idle = await createWorld({ counts: { plans: 5, customers: 5 } }, temporal)
      const { code, findings } = await check(idle, { TEMPORAL_ADDRESS: '' })
      expect(code).toBe(0)
      expect(findings).toContainEqual({
        check: 'temporal',
        status: 'notRunning',
        message:
          'No Temporal server is running. Start one with `npx connector up`, or give commands --local.',
      })
      const shown = async (...words: string[]) => (await callCommand(idle, ['check', ...words])).stdout
      expect(await shown()).not.toContain('BILLING_BASE_URL')
      expect(await shown('--all')).toMatch(/^ok .*[^]*\n\nvariable .*[^]*BILLING_BASE_URL/m)
    },
  )

  test.each([
    ['token', { BILLING_TOKEN: 'wrong' }, 'service', 'does not accept the token'],
    ['workspace', { BILLING_WORKSPACE: 'acc_other' }, 'service', 'check the workspace'],
    ['Temporal', { TEMPORAL_ADDRESS: '127.0.0.1:1' }, 'temporal', 'Start it with `npx connector up`'],
    ['address', { BILLING_BASE_URL: 'http://127.0.0.1:1' }, 'service', 'check the address'],
  ])('names the wrong %s', async (_, env, name, message) => {
    const { code, wrong, ms } = await check(world, env)
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
    const { code, wrong } = await check(world, { CONNECTOR_DATA_DIR: other })
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
    const { code, wrong } = await check(world, { CONNECTOR_DATA_DIR: '/dev/null/data' })
    expect(code).toBe(1)
    expect(wrong).toContainEqual({
      check: 'data folder',
      status: 'wrong',
      message: expect.stringMatching(/can't be written: .*CONNECTOR_DATA_DIR/),
    })
  })

  test('says what incremental exports of a list do not see', async () => {
    const { findings } = await check(world)
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
    const live = await check(odd)
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
    const { wrong } = await check(odd, { BILLING_TEST_MODE: 'true' })
    expect(wrong).toContainEqual({
      check: 'retentions',
      status: 'wrong',
      message: expect.stringContaining('ignores the test-mode header'),
    })
  })

  test('--fresh asks only whether what is exported has a young proven export', async () => {
    const never = await check(world, {}, '--fresh', '1h')
    expect(never).toMatchObject({ code: 1, wrong: [{ check: 'fresh' }] })
    const client = await connectTemporal(temporal)
    const run = (maxPages?: number) =>
      startRun({
        client,
        world,
        input: {
          resources: maxPages === undefined ? ['plans'] : ['plans', 'customers'],
          ...(maxPages && { maxPages }),
        },
      })
    await (await run()).result()
    expect(await check(world, {}, '--fresh', '1h')).toMatchObject({
      code: 0,
      findings: [{ check: 'plans', status: 'ok' }],
    })
    expect(await check(world, {}, '--fresh', '0m')).toMatchObject({ code: 1, wrong: [{ check: 'plans' }] })
    await (await run(1)).result()
    const { wrong } = await check(world, {}, '--fresh', '1h')
    expect(wrong).toEqual([
      { check: 'customers', status: 'wrong', message: expect.stringContaining('no proven export') },
    ])
    const nonsense = await callCommand(world, ['check', '--fresh', 'soon'])
    expect(nonsense).toMatchObject({ code: 2, stderr: expect.stringContaining('26h') })
  })
  test('--fresh is not kept from its answer by what was made once, nor by a clock that was ahead', async () => {
    // Published just now, each of them.
    const old = { startedAt: new Date(Date.now() - 48 * 3_600_000).toISOString() }
    const ahead = { startedAt: new Date(Date.now() + 48 * 3_600_000).toISOString() }
    const status = { filters: { status: 'active' } }
    expect(
      await checkNotes(
        note(),
        note({ ...old, resource: 'creditnotes', mode: 'byId' }),
        note({ ...old, resource: 'plans', forExcel: true }),
        note({ ...old, resource: 'customers', filters: { email: 'one@example.com' } }),
        note({ ...old, resource: 'subscriptions', filters: { status: 'paused' } }),
        note({ resource: 'subscriptions', ...status }),
        note({ ...old, resource: 'retentions', ...status }),
        note({ ...old, resource: 'plans', destination: 'postgres' }),
        note({ ...ahead, resource: 'plans', destination: 'postgres' }),
      ),
    ).toEqual([
      ['customers', true, expect.stringMatching(/^The last proven export to duckdb is .* old \(run\)\.$/)],
      ['subscriptions', true, expect.stringContaining('to duckdb, filtered by status, is')],
      ['retentions', false, expect.stringContaining('to duckdb, filtered by status, is 48 h')],
      ['plans', false, expect.stringContaining('to postgres is 48 h')],
    ])
    expect(await checkNotes(note({ forExcel: true }))).toEqual([
      ['fresh', false, expect.stringContaining('No list was ever exported')],
    ])
  })
})

/** What `check --fresh 26h` finds where these were published. */
async function checkNotes(...published: Publication[]) {
  const found = await checkFresh({
    dataDir: '/data',
    state: { publications: { all: () => Promise.resolve(published) } },
    testMode: false,
    withinMs: 26 * 3_600_000,
    files: undefined,
  })
  return found.map(({ check, status, message }) => [check, status === 'ok', message])
}
