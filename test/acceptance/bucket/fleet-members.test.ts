import { expect, test } from 'vitest'
import type { ExportInput } from '../../../core/exports/input.ts'
import { findOldExports } from '../../../core/exports/prune.ts'
import { cached } from '../../../core/storage/cached.ts'
import { openToRead } from '../../../scripts/runs/run-files.ts'
import { callCommand } from '../../system/command-line/call-command.ts'
import { connectTemporal, createWorld, startRun, type World } from '../../system/export/world.ts'
import { createFleet } from './fleet-world.ts'

const fleet = createFleet()
const {
  fleetOf,
  newFolder,
  newMachine,
  startMember,
  startMachine,
  forgetWorkers,
  openStore,
  expectEachOnce,
} = fleet

test('destinations that only one machine has, a DuckDB file and a folder, are refused with a sentence', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  await startMember(world)
  const client = await connectTemporal()
  const refusalOf = async (input: ExportInput) => {
    const run = await startRun({ client, world, input: { resources: ['plans'], ...input } })
    return await run.result().then(
      () => 'done',
      (error: { cause?: Error }) => error.cause?.message,
    )
  }
  expect(await refusalOf({ to: ['duckdb'] })).toMatch(/a DuckDB database is a file of one machine/)
  expect(await refusalOf({ out: 'here' })).toMatch(/a folder of one machine/)
})

test('a watermark is reset from any machine, but not while a worker may still advance it', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const member = await startMember(world)
  const run = await startRun({ client: await connectTemporal(), world, input: { resources: ['plans'] } })
  await run.result()
  const env = await newMachine(world)
  const reset = () => callCommand(world, ['state', 'reset', 'plans', '--why', 'a test'], { env })
  expect(await reset()).toMatchObject({ code: 2, stderr: expect.stringContaining('End all workers first') })
  await member.stop()
  await forgetWorkers(world)
  expect(await reset()).toMatchObject({ code: 0, stdout: expect.stringContaining('Reset 1 of plans') })
})

test('a state whose bucket is lost is bound to another one by a repair, and any number of workers use it', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  const bucket = `s3://exports/${world.workspace}`
  const earlier = await startMember(world, { CONNECTOR_FILES_URL: `${bucket}-lost` })
  await earlier.stop()
  expect(await callCommand(world, ['worker'], { env: fleetOf(world) })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`are in ${bucket}-lost, not in ${bucket}`),
  })
  await forgetWorkers(world)
  expect(
    await callCommand(world, ['state', 'repair', '--files-lost'], { env: fleetOf(world) }),
  ).toMatchObject({
    code: 0,
  })
  await Promise.all([startMember(world), startMachine(world)])
  const client = await connectTemporal()
  const run = await startRun({ client, world, input: { resources: ['plans'] } })
  expect((await run.result()).verdict).toBe('proven')
  await expectEachOnce(world, await run.result(), 'plans', 5)
  const later = await startRun({ client, world, input: { resources: ['plans'] } })
  expect((await later.result()).verdict).toBe('proven')
  // A machine that has nothing finds what the workers have published.
  const folder = await newFolder()
  const files = openStore(world)
  const database = { url: fleet.stateUrl, schema: `connector_${world.workspace}` }
  await using state = await openToRead({ folder, database })
  const shared = cached(folder, files)
  const old = await findOldExports({ state, shared, dataDir: folder, files, before: Date.now() + 1000 })
  expect(old.map((one) => one.run)).toEqual([(await run.result()).run])
})

test('two fleets never share a bucket or a state, nor does a worker without a bucket start', async () => {
  const world = await createWorld({ counts: { plans: 5 } })
  await startMember(world)
  const startFailure = async (of: World, env: Record<string, string | undefined>) => {
    const more = { ...fleetOf(of), CONNECTOR_DATA_DIR: await newFolder(), ...env }
    const { code, stderr } = await callCommand(of, ['worker'], { env: more })
    return { code, stderr }
  }
  const bucket = `s3://exports/${world.workspace}`
  expect(await startFailure(world, { CONNECTOR_FILES_URL: `${bucket}-2` })).toEqual({
    code: 2,
    stderr: expect.stringContaining(`are in ${bucket}, not in ${bucket}-2`),
  })
  expect(await startFailure(world, { CONNECTOR_FILES_URL: undefined })).toEqual({
    code: 2,
    stderr: expect.stringContaining('CONNECTOR_STATE_URL is set, and CONNECTOR_FILES_URL is not'),
  })
  const other = await createWorld({ counts: { plans: 5 } })
  expect(await startFailure(other, { CONNECTOR_FILES_URL: bucket })).toEqual({
    code: 2,
    stderr: expect.stringMatching(/keeps the files of the workers whose state is in .*, not in /),
  })
})
