import type { Client } from '@temporalio/client'
import fc from 'fast-check'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { hasFailed } from '../../../activities/schedules/pause-if-failing.ts'
import { apply as applyChange } from '../../../scripts/schedules/apply.ts'
import { cronProblem, toDefinition } from '../../../scripts/schedules/file.ts'
import { toTemporal } from '../../../scripts/schedules/schedules.ts'
import type { RunningWorker } from '../../../worker/start-worker.ts'
import { connectTemporal, openTestWorker, openWorld, until, type World } from '../export/world.ts'

let world: World
let worker: RunningWorker
beforeAll(async () => {
  world = await openWorld({ counts: { plans: 5 } })
  worker = await openTestWorker(world)
})
afterAll(async () => {
  await worker.stop()
  await world.close()
})

/** All worlds share one server: names are this world's own. */
const named = (name: string) => `${world.workspace}-${name}`
const schedules = (entries: string) => `timezone: America/Santiago\nschedules:\n${entries}`
/** A file that deletes what the others created. */
const none = 'schedules: {}\n'
const nightly = (more = '', cron = '30 2 * * *') =>
  `  ${named('nightly')}:\n    workflow: exportData\n    input: {resources: [plans]}\n    cron: ${cron}\n${more}`
const byHand = () =>
  `  ${named('by-hand')}:\n    workflow: exportData\n    input: {resources: [plans]}\n    paused: true\n`

async function apply(text: string, ...words: string[]) {
  const file = join(world.dataDir, 'schedules.yaml')
  await writeFile(file, text)
  const { code, stdout, stderr } = await callCommand(world, ['schedule', 'apply', file, ...words, '--json'])
  const document = JSON.parse(stdout) as {
    changes?: { action: string; name: string; differences?: string[] }[]
    warnings?: string[]
    error?: { name: string; message: string; hint: string }
  }
  const changes = document.changes?.map(
    ({ action, name }) => `${action} ${name.replace(`${world.workspace}-`, '')}`,
  )
  return { code, stderr, ...document, changes: changes ?? [], all: document.changes ?? [] }
}

const schedule = async (...words: string[]) => {
  const { code, stdout, stderr } = await callCommand(world, ['schedule', ...words, '--json'])
  return { code, stderr, document: JSON.parse(stdout) as Record<string, unknown> }
}

interface Listed {
  name: string
  next: string | null
  paused: boolean
  note: string
  last: { run: string; status: string; verdict: string | null; summary: string | null } | null
}
const list = async () => (await schedule('list')).document['schedules'] as Listed[]
const describeOf = (client: Client, name: string) => client.schedule.getHandle(named(name)).describe()

describe('schedule apply', () => {
  test('schedule apply creates what the file has, changes what changed, keeps the rest and deletes what is gone', async () => {
    const client = await connectTemporal()
    const first = await apply(schedules(nightly('    jitter: 5m\n') + byHand()), '--yes')
    expect(first).toMatchObject({ code: 0, changes: ['create nightly', 'create by-hand'] })
    const made = await describeOf(client, 'nightly')
    expect(made).toMatchObject({
      policies: { overlap: 'SKIP', catchupWindow: 12 * 3_600_000, pauseOnFailure: false },
      spec: { timezone: 'America/Santiago', jitter: 300_000 },
      state: { paused: false },
      action: { workflowType: 'exportData', taskQueue: world.taskQueue, args: [{ resources: ['plans'] }] },
    })
    expect((await describeOf(client, 'by-hand')).state).toMatchObject({ paused: true })
    await until(async () => (await list()).length === 2)

    const again = await apply(schedules(nightly('    jitter: 5m\n') + byHand()))
    expect(again).toMatchObject({ code: 0, changes: ['keep nightly', 'keep by-hand'] })

    const changed = await apply(
      schedules(nightly('    jitter: 5m\n    catchUp: 6h\n', '45 3 * * *')),
      '--yes',
    )
    expect(changed.changes).toEqual(['update nightly', 'delete by-hand'])
    expect(changed.all[0]?.differences).toEqual(['cron: 30 2 * * * → 45 3 * * *', 'catchUp: 12h → 6h'])
    expect((await describeOf(client, 'nightly')).policies.catchupWindow).toBe(6 * 3_600_000)
    await until(async () => (await list()).length === 1)
    expect(await apply(none, '--yes')).toMatchObject({ changes: ['delete nightly'] })
    await until(async () => (await list()).length === 0)
  })

  test('schedule apply applies nothing if anything in the file is wrong, or if there is nobody to ask', async () => {
    const wrong = await apply(
      schedules(nightly() + nightly('', '61 2 * * *').replace('nightly', 'other')),
      '--yes',
    )
    expect(wrong).toMatchObject({ code: 2, error: { name: 'SettingsError' } })
    expect(wrong.error?.message).toContain('line 10')
    const unasked = await apply(schedules(nightly()))
    expect(unasked).toMatchObject({ code: 2, error: { hint: 'Nothing was applied. Add --yes.' } })
    expect(unasked.stderr).toContain(`+ ${named('nightly')}: exportData, 30 2 * * * in America/Santiago`)
    expect(await list()).toEqual([])
    const missing = await callCommand(world, ['schedule', 'apply', 'nowhere.yaml', '--yes'])
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('does not exist') })
  })

  test('schedule apply warns of a provenWithin that nothing watches', async () => {
    const watched = nightly('    provenWithin: 4h\n')
    const watch = `  ${named('watch')}:\n    workflow: watchSchedules\n    every: 1h\n`
    const warnings = async (text: string) => (await apply(schedules(text), '--yes')).warnings
    expect(await warnings(watched)).toEqual([expect.stringContaining('nothing watches provenWithin')])
    expect(await warnings(watched + watch)).toEqual([])
    expect(await warnings(`${watched}    paused: true\n`)).toEqual([])
    await apply(none, '--yes')
  })

  test('schedule apply reverts changes made in the UI, except a pause, and touches no schedule of others', async () => {
    const client = await connectTemporal()
    const text = schedules(nightly())
    await apply(text, '--yes')
    const handle = client.schedule.getHandle(named('nightly'))
    await handle.update((before) => ({
      ...before,
      spec: { cronExpressions: ['0 5 * * *'], timezone: 'America/Santiago' },
    }))
    // Temporal applies a change of a schedule after it has accepted it, and a pause perhaps before an update.
    await until(async () => (await handle.describe()).spec.calendars?.[0]?.hour?.[0]?.start === 5)
    await handle.pause('Paused by me: holidays')
    await until(async () => (await handle.describe()).state.paused)
    const back = await apply(text, '--yes')
    expect(back.all[0]).toMatchObject({
      action: 'update',
      differences: ['changed outside the file; restored'],
    })
    expect(back.warnings).toEqual([`${named('nightly')} stays paused: Paused by me: holidays`])
    const { state, spec } = await handle.describe()
    expect(state).toMatchObject({ paused: true, note: 'Paused by me: holidays' })
    expect(spec.calendars?.[0]).toMatchObject({ hour: [{ start: 2 }], minute: [{ start: 30 }] })
    const args = [{ resources: ['customers'] }]
    await handle.update((before) => ({ ...before, action: { ...before.action, args } }))
    await until(async () => isDeepStrictEqual((await handle.describe()).action.args, args))
    expect(await apply(text, '--yes')).toMatchObject({ changes: ['update nightly'] })
    expect((await handle.describe()).action.args).toEqual([{ resources: ['plans'] }])
    // The schedule would end silently.
    const endAt = new Date(Date.now() + 86_400_000)
    await handle.update((before) => ({ ...before, spec: { ...before.spec, endAt } }))
    await until(async () => (await handle.describe()).spec.endAt !== undefined)
    expect(await apply(text, '--yes')).toMatchObject({ changes: ['update nightly'] })
    expect((await handle.describe()).spec.endAt).toBeUndefined()
    await handle.update((before) => ({ ...before, state: { ...before.state, remainingActions: 2 } }))
    await until(async () => (await handle.describe()).state.remainingActions === 2)
    expect(await apply(text, '--yes')).toMatchObject({ changes: ['update nightly'] })
    expect((await handle.describe()).state.remainingActions).toBeUndefined()
    expect(await apply(text)).toMatchObject({ changes: ['keep nightly'] })

    const foreign = named('foreign')
    await client.schedule.create({
      scheduleId: foreign,
      spec: {},
      action: { type: 'startWorkflow', workflowType: 'other', taskQueue: 'other', args: [] },
    })
    const taken = await apply(text + `  ${foreign}:\n    workflow: exportData\n    every: 1h\n`, '--yes')
    expect(taken).toMatchObject({
      code: 2,
      error: { message: expect.stringContaining('was not created for') },
    })
    await apply(none, '--yes')
    expect((await client.schedule.getHandle(foreign).describe()).action.workflowType).toBe('other')
    await client.schedule.getHandle(foreign).delete()
  })
})

test('schedule apply on two machines at once leaves the later definition, and never changes a schedule of others', async () => {
  const client = await connectTemporal()
  const { taskQueue } = world
  const make = (name: string, cron: string) =>
    applyChange({
      client,
      taskQueue,
      change: {
        action: 'create',
        name: named(name),
        definition: toDefinition({ workflow: 'exportData', cron }, 'UTC'),
      },
    })
  // Both saw that it was not there.
  await make('twice', '30 2 * * *')
  await make('twice', '45 3 * * *')
  const { spec, memo } = await describeOf(client, 'twice')
  expect(spec.calendars).toMatchObject([{ hour: [{ start: 3 }], minute: [{ start: 45 }] }])
  expect(memo).toMatchObject({ taskQueue })
  const foreign = { taskQueue: 'other', workflowType: 'other', type: 'startWorkflow' as const, args: [] }
  const theirs = await client.schedule.create({ scheduleId: named('theirs'), spec: {}, action: foreign })
  await expect(make('theirs', '30 2 * * *')).rejects.toThrow('was not created for')
  expect((await theirs.describe()).action.workflowType).toBe('other')
  await theirs.delete()
  await client.schedule.getHandle(named('twice')).delete()
})

describe('a schedule', () => {
  test('a schedule is triggered, listed with its verdict, paused, unpaused and deleted', async () => {
    await apply(schedules(nightly() + byHand()), '--yes')
    const started = await callCommand(world, ['schedule', 'trigger', named('by-hand')])
    expect(started.code).toBe(0)
    const [, run = ''] =
      /^Started (\S+)\. Follow it with: npx connector run watch \1$/m.exec(started.stdout) ?? []
    expect(run, started.stdout).toMatch(new RegExp(`^${named('by-hand')}-\\d{4}-\\d\\d-\\d\\dT`))
    const client = await connectTemporal()
    await client.workflow.getHandle(run).result()
    const watched = await callCommand(world, ['run', 'watch', named('by-hand')])
    expect([watched.code, watched.stderr]).toEqual([
      2,
      `error: ${named('by-hand')} is a schedule, not a run. Its last run is ${run}.\n`,
    ])
    const listed = await list()
    expect(listed.find(({ name }) => name === named('by-hand'))).toMatchObject({
      paused: true,
      next: null,
      last: { run, status: 'completed', verdict: 'proven' },
    })
    const next = listed.find(({ name }) => name === named('nightly'))?.next ?? ''
    expect(new Date(next).toISOString()).toMatch(/T0[56]:3\d:/)

    await schedule('pause', named('nightly'), '--why', 'stock-taking', '--by', 'me')
    expect((await describeOf(client, 'nightly')).state).toEqual({
      paused: true,
      note: 'Paused by me: stock-taking',
      remainingActions: undefined,
    })
    await schedule('unpause', named('nightly'), '--why', 'done', '--by', 'me')
    expect((await describeOf(client, 'nightly')).state.paused).toBe(false)
    expect(await schedule('delete', named('nightly'))).toMatchObject({ code: 2 })
    expect(await schedule('delete', named('nightly'), '--yes')).toMatchObject({ code: 0 })
    expect(await schedule('trigger', named('nightly'))).toMatchObject({ code: 2 })
    await apply(none, '--yes')
  })

  test('a schedule is not triggered while its run is active', async () => {
    await apply(schedules(byHand()), '--yes')
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 503 }] })
    const { document } = await schedule('trigger', named('by-hand'))
    const second = await schedule('trigger', named('by-hand'))
    expect(second).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${String(document['run'])} of`),
    })
    world.sandbox.control.setFaults({ faults: [] })
    await (await connectTemporal()).workflow.getHandle(String(document['run'])).result()
    await apply(none, '--yes')
  })

  test('a schedule is listed with the outcome of its last run, even one that somebody terminated', async () => {
    await apply(schedules(byHand()), '--yes')
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 503 }] })
    const { document } = await schedule('trigger', named('by-hand'))
    const run = (await connectTemporal()).workflow.getHandle(String(document['run']))
    await run.terminate('wrong slot')
    world.sandbox.control.setFaults({ faults: [] })
    expect((await list())[0]?.last).toMatchObject({
      status: 'terminated',
      verdict: null,
      summary: 'wrong slot',
    })
    const { stdout } = await callCommand(world, ['schedule', 'list'])
    const time = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d [+-]\d\d:\d\d`
    expect(stdout).toMatch(new RegExp(`^${named('by-hand')}  paused  ${time}  terminated  exportData, `, 'm'))
    expect(stdout).toMatch(
      new RegExp(`\n\n${named('by-hand')}: Paused .*\n${named('by-hand')}: wrong slot\n$`),
    )
    await apply(none, '--yes')
  })

  test('a schedule pauses itself after pauseAfterFailures failed runs in a row, with the reason in its note, also when one slot was run again under its old id', async () => {
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 403 }] })
    await apply(schedules(nightly('    pauseAfterFailures: 2\n')), '--yes')
    const client = await connectTemporal()
    const handle = client.schedule.getHandle(named('nightly'))
    const at = Date.parse('2026-11-20T05:30:00Z')
    const runs = async () => (await handle.describe()).info.recentActions.map(({ action }) => action.workflow)
    for (const time of [1, 2]) {
      expect((await handle.describe()).state.paused).toBe(false)
      await handle.backfill({ start: new Date(at - 1_000), end: new Date(at + 1_000), overlap: 'SKIP' })
      await until(async () => (await runs()).length === time)
      const { workflowId, firstExecutionRunId } = (await runs()).at(-1)!
      await expect(client.workflow.getHandle(workflowId, firstExecutionRunId).result()).rejects.toThrow(
        'failed',
      )
    }
    expect(new Set((await runs()).map(({ workflowId }) => workflowId)).size).toBe(1)
    // The schedule is a workflow too: it takes the pause a moment later.
    await until(async () => (await handle.describe()).state.paused)
    expect((await handle.describe()).state.note).toMatch(
      /^Paused after 2 failed runs in a row; the last: .*(403|permission|workspace)/,
    )
    world.sandbox.control.setFaults({ faults: [] })
    await apply(none, '--yes')
  })

  test('a run that Temporal has forgotten counts as failed only if its failure is recorded', async () => {
    const client = await connectTemporal()
    const forgotten = { workflowId: named('forgotten'), firstExecutionRunId: randomUUID() }
    expect(await hasFailed({ client, recorded: new Set(), ...forgotten })).toBe(false)
    const recorded = new Set([forgotten.firstExecutionRunId])
    expect(await hasFailed({ client, recorded, ...forgotten })).toBe(true)
  })
})

test(
  'a cron expression that the file may have is one that Temporal starts at some time',
  { tags: ['long'] },
  async () => {
    const client = await connectTemporal()
    const values = (from: number, to: number) => {
      const one = fc.integer({ min: from, max: to })
      const range = fc.tuple(one, one).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)
      const step = fc.tuple(fc.oneof(fc.constant('*'), range), fc.integer({ min: 1, max: 20 }))
      return fc.oneof(
        fc.constant('*'),
        fc
          .array(fc.oneof(one.map(String), range), { minLength: 1, maxLength: 3 })
          .map((all) => all.join(',')),
        step.map(([what, by]) => `${what}/${by}`),
      )
    }
    const day = fc.oneof(values(0, 7), fc.constantFrom('MON-FRI', 'sun', 'SAT,SUN', 'Tue'))
    const month = fc.oneof(fc.constant('*'), values(1, 12), fc.constantFrom('JAN', 'feb-apr', 'DEC,JUN'))
    const expression = fc
      .tuple(values(0, 59), values(0, 23), values(1, 28), month, day)
      .map((all) => all.join(' '))
    let id = 0
    await fc.assert(
      fc.asyncProperty(expression, async (cron) => {
        if (cronProblem(cron) !== undefined) return
        const name = named(`cron-${(id += 1)}`)
        const definition = toDefinition({ workflow: 'exportData', cron, paused: true }, 'UTC')
        const wanted = { name, definition, taskQueue: world.taskQueue }
        const handle = await client.schedule.create({
          scheduleId: name,
          ...toTemporal(wanted),
          state: { paused: true },
        })
        const described = await handle.describe()
        await handle.delete()
        expect(described.info.nextActionTimes).not.toEqual([])
      }),
      { seed: 20261121, numRuns: 40, endOnFailure: true },
    )
  },
)
