import { setTimeout as sleep } from 'node:timers/promises'
import { defaultPayloadConverter } from '@temporalio/common'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openState } from '../../../core/state/open.ts'
import { missingExports, toExpected } from '../../../core/schedules/slots.ts'
import { apply } from '../../../scripts/schedules/apply.ts'
import { type ScheduleEntry, toDefinition } from '../../../scripts/schedules/file.ts'
import { ownerMemo, toTemporal } from '../../../scripts/schedules/schedules.ts'
import type { watchSchedules } from '../../../workflows/watch-schedules.ts'
import { connectTemporal, createWorld, startRun, startTestWorker, until } from '../export/world.ts'
import { openChannel } from '../notify/receiver.ts'

async function open() {
  const receiver = await openChannel()
  const world = await createWorld({ counts: { plans: 5 } })
  await startTestWorker(world, { NOTIFY_URL: receiver.url })
  const client = await connectTemporal()
  const schedule = async (name: string, entry: Partial<ScheduleEntry>, pausedBy?: string) => {
    const scheduleId = `${world.workspace}-${name}`
    const input = { resources: ['plans'], to: ['duckdb'] }
    const definition = toDefinition({ workflow: 'exportData', input, every: '2s', ...entry }, 'UTC')
    const { taskQueue } = world
    const paused = definition.paused || pausedBy !== undefined
    const handle = await client.schedule.create({
      scheduleId,
      memo: ownerMemo({ taskQueue }),
      ...toTemporal({ name: scheduleId, definition, taskQueue }),
      state: { paused, ...(pausedBy !== undefined && { note: pausedBy }) },
    })
    onTestFinished(() => handle.delete())
    return { handle, scheduleId }
  }
  let looks = 0
  const look = async (input: object = {}) => {
    looks += 1
    const run = await client.workflow.start<typeof watchSchedules>('watchSchedules', {
      workflowId: `${world.workspace}-watch-${looks}`,
      taskQueue: world.taskQueue,
      args: [input],
    })
    return run.result()
  }
  /** The list of schedules is a moment behind. */
  const listed = (scheduleId: string) =>
    until(async () => {
      for await (const one of client.schedule.list())
        if (one.scheduleId === scheduleId && one.memo) return true
      return false
    })
  return { receiver, world, client, schedule, look, listed }
}

describe('the watch', () => {
  test(
    'the watch reports each missed slot once with its reason, and none that an export by hand covers',
    { tags: ['long'] },
    async () => {
      const { receiver, world, client, schedule, look, listed } = await open()
      const { scheduleId, handle } = await schedule(
        'nightly',
        { provenWithin: '1s' },
        'Paused by me: holidays',
      )
      await schedule('by-hand', { provenWithin: '1s', paused: true })
      await schedule('unwatched', {}, 'Paused by me too')
      await listed(scheduleId)
      const { createdAt } = (await handle.describe()).info
      await until(() => Date.now() > createdAt.getTime() + 5_100)
      const first = await look()
      expect(first.missed.length).toBeGreaterThanOrEqual(1)
      expect(first.missed.every((one) => one.schedule === scheduleId)).toBe(true)
      expect(first.missed[0]?.reason).toBe(
        'no proven export of plans to duckdb; the schedule is paused: Paused by me: holidays',
      )
      expect(first.summary).toBe(
        `${first.missed.length} of ${first.slots} slots have no proven export in time`,
      )

      // Somebody exports by hand, for the slot that has just begun.
      const slot = Math.floor(Date.now() / 2_000) * 2_000 + 2_000
      await sleep(slot + 1_100 - Date.now())
      const input = { resources: ['plans' as const], to: ['duckdb' as const] }
      const report = await (await startRun({ client, world, input })).result()
      expect(report.verdict).toBe('proven')
      await until(() => Date.now() > slot + 4_100)
      const second = await look()
      const ats = second.missed.map(({ at }) => at)
      for (const { at } of first.missed) expect(ats).toContain(at)
      expect(ats.map((at) => Math.floor(Date.parse(at) / 2_000) * 2_000)).not.toContain(slot)
      await until(() => receiver.received.length >= ats.length)
      const ids = receiver.received.map(({ id }) => id)
      expect(ids).toHaveLength(ats.length)
      expect(new Set(ids)).toEqual(new Set(ats.map((at) => `missed/${scheduleId}/${at}`)))
      const { body } = receiver.received[0]!
      expect(body).toMatchObject({
        event: { kind: 'missed', level: 'problems' },
        command: `npx connector schedule trigger ${scheduleId}`,
      })
    },
  )

  test(
    'the watch judges the slots before a change by the schedule as it was then',
    { tags: ['long'] },
    async () => {
      const { world, client, schedule, look, listed } = await open()
      const { scheduleId, handle } = await schedule(
        'nightly',
        { provenWithin: '1s' },
        'Paused by me: holidays',
      )
      await listed(scheduleId)
      const { createdAt } = (await handle.describe()).info
      await until(() => Date.now() > createdAt.getTime() + 5_100)
      const change = (entry: Partial<ScheduleEntry>) => {
        const definition = toDefinition({ workflow: 'exportData', provenWithin: '1s', ...entry }, 'UTC')
        const { taskQueue } = world
        return apply({
          client,
          taskQueue,
          change: {
            action: 'update',
            name: scheduleId,
            definition,
            differences: [],
            paused: true,
            note: 'Fixed',
          },
        })
      }
      await change({ every: '1d', input: { resources: ['customers'] } })
      const before = Date.now()
      // By then the last slot before the change is due, too: both looks see the same.
      await until(() => Date.now() > before + 1_100)
      const first = await look()
      expect(first.missed.length).toBeGreaterThanOrEqual(2)
      for (const { at, reason } of first.missed) {
        expect(Date.parse(at)).toBeLessThan(before)
        expect(reason).toBe('no proven export of plans to duckdb; the schedule is paused: Fixed')
      }
      // Each change keeps what came before it.
      await change({ every: '1d', provenWithin: '2h', input: { resources: ['retentions'] } })
      expect((await look()).missed).toEqual(first.missed)
    },
  )

  test(
    'the watch reports a schedule whose input somebody spoilt, and the others too',
    { tags: ['long'] },
    async () => {
      const { schedule, look, listed } = await open()
      const paused = 'Paused by me: holidays'
      const { scheduleId, handle } = await schedule('nightly', { provenWithin: '1s' }, paused)
      const spoilt = await schedule('spoilt', { provenWithin: '1s', input: { resources: 'plans' } }, paused)
      await listed(scheduleId)
      await listed(spoilt.scheduleId)
      const { createdAt } = (await handle.describe()).info
      await until(() => Date.now() > createdAt.getTime() + 5_100)
      const { missed, slots } = await look()
      expect(slots).toBe(missed.length)
      expect(new Set(missed.map((one) => one.schedule))).toEqual(new Set([scheduleId, spoilt.scheduleId]))
      expect(missed.find((one) => one.schedule === spoilt.scheduleId)?.reason).toBe(
        `its input is not valid for an export, so restore it with \`npx connector schedule apply\`; the schedule is paused: ${paused}`,
      )
    },
  )

  test('the watch says how the run of a missed slot ended', { tags: ['long'] }, async () => {
    const { client, schedule, look, listed } = await open()
    // One request of a list is no proof.
    const { scheduleId, handle } = await schedule('nightly', {
      provenWithin: '1s',
      input: { resources: ['customers'], to: ['duckdb'], maxPages: 1 },
    })
    await listed(scheduleId)
    const first = async () => (await handle.describe()).info.recentActions[0]
    await until(async () => (await first()) !== undefined)
    const { action, scheduledAt } = (await first())!
    const { workflowId } = action.workflow
    const { verdict, summary } = await client.workflow.getHandle(workflowId).result()
    expect(verdict).toBe('unproven')
    await until(() => Date.now() > scheduledAt.getTime() + 2_100)
    const { missed } = await look()
    expect(missed.map(({ reason }) => reason)).toContain(
      `no proven export of customers to duckdb; its run ${workflowId} ended unproven: ${summary}`,
    )
  })

  test.each([
    ['behind', -3_600_000],
    ['ahead of', 3_600_000],
  ])(
    'a slot is judged by Temporal’s clock alone: a worker whose clock is %s it covers its own slot and no other',
    async (_, offMs) => {
      const now = Date.now
      let off = 0
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + off)
      onTestFinished(() => clock.mockRestore())
      const { world, client } = await open()
      off = offMs
      const at = Math.floor(now() / 1_000) * 1_000
      const workflowId = `${world.workspace}-nightly`
      const input = { resources: ['plans' as const] }
      const name = `${workflowId}-${new Date(at).toISOString().replace('.000Z', 'Z')}`
      const run = await startRun({ client, world, input, name })
      expect((await run.result()).verdict).toBe('proven')
      off = 0
      const state = await openState({ folder: world.dataDir, readOnly: true })
      const published = await state.publications.all({ testMode: false })
      await state.close()
      const missing = (slot: { at: number; workflowId: string }) =>
        missingExports({
          slot: { next: slot.at + 1_800_000, jitterMs: 0, ...slot },
          expected: toExpected(input, world.dataDir) ?? [],
          published,
          files: undefined,
        })
      expect(await missing({ at, workflowId })).toEqual([])
      // As an export by hand, it is of the slot in which it ran.
      const byHand = 'another'
      expect(await missing({ at, workflowId: byHand })).toEqual([])
      for (const other of [-3_600_000, 3_600_000])
        expect(await missing({ at: at + other - 60_000, workflowId: byHand })).toHaveLength(1)
    },
  )

  test('the step of a watch says in the UI up to when it looks', async () => {
    const { world, client, look } = await open()
    const { until: lookedUntil } = await look()
    const { events } = await client.workflow.getHandle(`${world.workspace}-watch-1`).fetchHistory()
    const summaries = (events ?? []).flatMap(({ userMetadata }) => userMetadata?.summary ?? [])
    expect(summaries.map((summary) => defaultPayloadConverter.fromPayload(summary))).toEqual([
      `slots due before ${lookedUntil}`,
    ])
  })

  test('the watch refuses a wrong input with one sentence', async () => {
    const { look } = await open()
    await expect(look({ since: 'yesterday' })).rejects.toMatchObject({
      cause: {
        type: 'InvalidInput',
        message: expect.stringMatching(
          /^The input is not one the watch takes: .*Its only field is lookBackHours\.$/,
        ),
      },
    })
  })
})
