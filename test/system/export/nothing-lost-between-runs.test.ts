import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { moveWatermark } from '../../../core/exports/watermark.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { openState } from '../../../core/state/open.ts'
import { createPlan } from './plan.ts'
import { connectTemporal, createWorld, rowsOf, startRun, startTestWorker } from './world.ts'

const incremental = { mode: 'incremental', lookbackSeconds: 0 } as const

/** A service, its worker, and a way to run an export to its end. */
async function setUp(options: SandboxOptions) {
  const world = await createWorld(options)
  await startTestWorker(world, { BILLING_READ_LAG_SECONDS: '0' })
  const client = await connectTemporal()
  const run = async (input: ExportInput) => (await startRun({ client, world, input })).result()
  return { control: world.sandbox.control, run }
}

describe('what changed between two incremental exports is in the second', () => {
  test('where no answer carries a Date, and this machine is ahead of the service', async () => {
    const { control, run } = await setUp({
      counts: { customers: 200 },
      dateHeader: false,
      clockSkewSeconds: -600,
    })
    const input = { ...incremental, resources: ['customers' as const] }
    await run(input)
    const id = String(control.ids({ resource: 'customers' })[7])
    control.update({ resource: 'customers', id, fields: { name: 'changed' } })
    const rows = await rowsOf(await run(input), 'customers')
    expect(rows).toContainEqual(expect.objectContaining({ id, name: 'changed' }))
  })

  test('where the list does not show the status that it changed to', async () => {
    const hide = { kind: 'hide', statuses: ['cancelled'] } as const
    const { control, run } = await setUp({ counts: { subscriptions: 200 }, faults: [hide] })
    const input = { ...incremental, resources: ['subscriptions' as const] }
    await run(input)
    const changed = control.ids({ resource: 'subscriptions' }).slice(0, 5).map(String)
    for (const id of changed)
      control.update({ resource: 'subscriptions', id, fields: { status: 'cancelled' } })
    const rows = await rowsOf(await run(input), 'subscriptions')
    for (const id of changed)
      expect(rows).toContainEqual(expect.objectContaining({ id, status: 'cancelled' }))
  })

  test('and so is a column that was left out before', async () => {
    const { run } = await setUp({ counts: { customers: 150 } })
    const input = { ...incremental, resources: ['customers' as const] }
    await run({ ...input, exclude: ['customers.email'] })
    const rows = await rowsOf(await run(input), 'customers')
    expect(rows).toHaveLength(150)
    expect(rows.filter(({ email }) => email?.includes('@')).length).toBeGreaterThan(100)
  })
})

describe('a watermark', () => {
  async function openWatermarks() {
    const folder = await mkdtemp(join(tmpdir(), 'watermarks-'))
    const state = await openState({ folder })
    onTestFinished(async () => {
      await state.close()
      await rm(folder, { recursive: true })
    })
    return { state, hashKey: '', destinations: new Map() }
  }
  const at = Date.parse('2026-11-20T00:00:00Z')
  const proven = {
    verdict: 'proven',
    clock: 'service',
    completeThrough: new Date(at).toISOString(),
    hiddenFound: false,
  } as const

  test('does not move where what came before was never published there', async () => {
    const deps = await openWatermarks()
    const { watermarks } = deps.state
    const moves: number[] = []
    const noted = {
      ...watermarks,
      move: (to: Parameters<typeof watermarks.move>[0]) => (moves.push(to.to), watermarks.move(to)),
    }
    const state = { ...deps.state, watermarks: noted }
    const publish = (since: number | undefined) =>
      moveWatermark({
        deps: { ...deps, state },
        plan: createPlan({ since: since === undefined ? {} : { customers: since } }),
        resource: 'customers',
        destination: 'csv',
        read: proven,
      })
    await publish(at - 1000)
    expect(moves).toEqual([])
    await publish(undefined)
    await publish(at - 1000)
    expect(moves).toEqual([at, at])
  })
})
