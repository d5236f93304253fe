import { Client, Connection } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Activities, createActivities } from '../../../activities/index.ts'
import type { ImportPlan } from '../../../core/imports/input.ts'
import { planOf } from '../../../scripts/runs/run-files.ts'
import { openTestWorker, openWorld, startRun, type World } from '../export/world.ts'
import { putFile, retentionsCsv, startImport } from '../import/world.ts'
import type { Answer, callStep } from './probes/call-step.ts'

const secret = 'token-that-nobody-may-read'

let world: World
let worker: Awaited<ReturnType<typeof openTestWorker>>
let attacker: { worker: Worker; ran: Promise<void>; connection: NativeConnection }
let connection: Connection
let client: Client
/** A folder of somebody else, beside the data folder. */
let outside: string
/** The same, from the data folder. */
let up: string
let runs: { export: string; import: string; recovery: string }
let plan: ImportPlan

beforeAll(async () => {
  const counts = { customers: 3, subscriptions: 3, plans: 1, retentions: 3, orders: 0 }
  world = await openWorld({ counts })
  outside = await mkdtemp(join(tmpdir(), 'somebody-else-'))
  up = relative(world.dataDir, outside)
  worker = await openTestWorker(world)
  connection = await Connection.connect({ address: inject('temporalAddress') })
  client = new Client({ connection })
  const input = { kind: 'retentions', file: await putFile(world, retentionsCsv(2)), dryRun: true } as const
  const exporting = await startRun({ client, world, input: { resources: ['plans'] } })
  const importing = await startImport({ client, world, input })
  const recovering = await client.workflow.start('recoverSubscriptions', {
    workflowId: `recovery-${world.workspace}`,
    taskQueue: world.taskQueue,
    args: [{ dryRun: true }],
  })
  await Promise.all([exporting.result(), importing.result(), recovering.result()])
  runs = {
    export: exporting.workflowId,
    import: importing.workflowId,
    recovery: recovering.workflowId,
  }
  plan = (await planOf({ state: { folder: world.dataDir } }, runs.import)) as ImportPlan
  await furnish()
  attacker = await startAttacker()
})

afterAll(async () => {
  attacker.worker.shutdown()
  await attacker.ran
  await attacker.connection.close()
  await connection.close()
  await worker.stop()
  await world.close()
  await rm(outside, { recursive: true, force: true })
})

async function startAttacker() {
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') })
  const made = await Worker.create({
    connection,
    taskQueue: `attacker-${world.workspace}`,
    workflowsPath: new URL('probes/call-step.ts', import.meta.url).pathname,
  })
  return { worker: made, ran: made.run(), connection }
}

/** A folder that a step would take for a run's if it followed links out of the data folder. */
async function furnish(): Promise<void> {
  const saved = { ...plan, run: 'linked', folder: 'imports/linked' }
  await mkdir(join(outside, 'input'), { recursive: true })
  await writeFile(join(outside, '.env'), `${secret}\n`)
  await writeFile(join(outside, 'input/rows.csv'), `${secret}\n1\n`)
  await writeFile(join(outside, 'input/mapping.json'), '{}')
  await writeFile(join(outside, 'plan.json'), JSON.stringify(saved))
  await writeFile(join(outside, 'x.checkpoint.json'), secret)
  for (const room of ['imports', 'recoveries', 'parts'])
    await symlink(outside, join(world.dataDir, room, 'linked'))
  await symlink(outside, join(world.dataDir, 'inbox/linked'))
}

/** Every file of the folder with its bytes, and when it was changed. */
async function pictureOf(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true })
  const all = names.toSorted().map(async (name) => {
    const { mtimeMs, size } = await stat(join(folder, name))
    return `${name} ${size} ${mtimeMs}`
  })
  return await Promise.all(all)
}

let calls = 0

async function call(step: string, inputs: readonly object[]): Promise<Answer[]> {
  calls += 1
  const run = await client.workflow.start<typeof callStep>('callStep', {
    workflowId: `crafted-${world.workspace}-${calls}`,
    taskQueue: `attacker-${world.workspace}`,
    args: [{ taskQueue: world.taskQueue, step, inputs: [...inputs] }],
  })
  return await run.result()
}

/** Names of runs that are not there, and all that could make a path of a name. */
const craftedNames = () => [
  '',
  '.',
  '..',
  up,
  `../${up}`,
  outside,
  `${runs.import}/../../${up}`,
  'linked',
  'a\0b',
  'x'.repeat(5_000),
  12,
  null,
  ['..'],
]

/** A plan as a step used to be given one, with every path of it leading out. */
const craftedPlan = (run: unknown) => ({
  ...plan,
  run,
  folder: up,
  source: `${up}/.env`,
  file: `${up}/.env`,
  mapping: `${up}/input/mapping.json`,
  lines: `${up}/.env`,
  execution: { workflowId: 'x', runId: 'y' },
  resources: ['plans', `../../${up}`],
  to: ['csv'],
  since: {},
  filters: {},
  exclude: [],
  hash: [],
  out: outside,
  narrowing: {},
  limits: {},
})

const decision = { at: '2026-01-01T00:00:00Z', about: 'approval', by: 'x', why: 'y' }
const segment = { seconds: 1, breakers: {}, claims: 0, limits: {} }
const published = () => ({
  resource: 'plans',
  destination: 'csv',
  verdict: 'proven',
  reasons: [],
  records: 1,
  where: outside,
  manifest: join(outside, 'manifest.json'),
  warnings: [],
  missing: { count: 1, first: ['x'], file: null },
})

/** What each step takes beside its run, crafted. */
const crafted: Record<keyof Activities, () => object[]> = {
  openExport: () => [{ out: outside }, { out: up }, { out: 'inbox/linked' }, { out: 'a\0b' }],
  openFetch: () => filesOutside().map((file) => ({ documents: 'credit-notes', file })),
  openPublish: () => craftedNames().map((run) => ({ run })),
  openRun: () => [
    { job: up },
    ...filesOutside()
      .flatMap((file) => [
        { kind: 'retentions', file },
        { kind: 'retentions', file: 'inbox/rows.csv', lines: file },
        { kind: 'retentions', file: 'inbox/rows.csv', mapping: file },
      ])
      .map((input) => ({ job: 'import', input, firstRunId: up })),
  ],
  planRead: () => resources().map((resource) => ({ resource })),
  finishRead: () => resources().map((resource) => ({ resource, seconds: 1 })),
  readRange: () => [
    ...resources().map((resource) => ({ resource, range: 0, seconds: 1 })),
    ...[up, '00', 'length', -1, 0.5, null].map((range) => ({ resource: 'plans', range, seconds: 1 })),
  ],
  checkReferences: () => [
    ...resources().map((resource) => ({ resource, checkpoints: {} })),
    ...[`../../../${up}/x`, 'a\0b', 12].map((customers) => ({
      resource: 'plans',
      checkpoints: { customers, plans: customers },
    })),
  ],
  publishExport: () => [
    ...resources().map((resource) => ({ resource, destination: 'csv', checkpoint: 'x' })),
    ...[`../../../${up}/x`, join(outside, 'x'), '../x', 'a\0b', 12].map((checkpoint) => ({
      resource: 'plans',
      destination: 'csv',
      checkpoint,
    })),
  ],
  closeExport: () => [{ exports: [published()] }, { exports: [{ ...published(), resource: `../../${up}` }] }],
  stageRun: () => [{}],
  sendRun: () => [segment],
  proveRun: () => [{ limits: {} }],
  skipRemaining: () => [{ why: 'x' }],
  closeRun: () => [{ how: 'finished' }],
  noteDecision: () => [{ decision }],
  resolveRow: () => [{ row: 2, decision: { state: 'dropped' }, by: 'x', why: 'y' }],
  sendNotification: () => [{ kind: 'ended', summary: outside, run: { workflowId: 'x', runId: 'y' } }],
  findMissed: () => [{ input: { lookBackHours: up }, until: outside }],
  pauseIfFailing: () => [{ schedule: up, why: outside }],
}

const filesOutside = () => [
  `${up}/.env`,
  `${outside}/.env`,
  'inbox/linked/.env',
  'inbox/linked/none',
  'imports/linked/plan.json',
  'a\0b',
  '..',
]
const resources = () => [`../../${up}`, outside, '..', 'a\0b', 'none', 12]

const toInput = (input: object, run: unknown): object =>
  run === undefined
    ? input
    : { ...input, run, identity: plan.identity, plan: { ...craftedPlan(run), identity: plan.identity } }

const everyStep = Object.keys(createActivities({ state: {} } as never)) as (keyof Activities)[]

const isOfRun = (step: keyof Activities) =>
  !step.startsWith('open') && !['sendNotification', 'findMissed', 'pauseIfFailing'].includes(step)

test.each(everyStep)(
  '%s, called by somebody who reaches Temporal alone, reads and writes nothing outside the data folder',
  async (step) => {
    const before = await pictureOf(outside)
    const names = isOfRun(step) ? Object.values(runs) : [undefined]
    const answers = await call(
      step,
      names.flatMap((run) => crafted[step]().map((input) => toInput(input, run))),
    )
    expect(JSON.stringify(answers)).not.toContain(secret)
    expect(await pictureOf(outside)).toEqual(before)
  },
)

test.each(everyStep.filter(isOfRun))(
  '%s refuses a run that does not lie in the data folder',
  async (step) => {
    const before = await pictureOf(outside)
    const [input = {}] = crafted[step]()
    const answers = await call(
      step,
      craftedNames().map((run) => toInput(input, run)),
    )
    for (const answer of answers)
      expect(answer).toEqual({ refused: expect.stringMatching(/ takes the name|There is no run/) })
    expect(await pictureOf(outside)).toEqual(before)
  },
)

test('a run of another worker is refused by the name of what differs', async () => {
  const identity = { ...plan.identity, workspace: 'acc_other' }
  const [answer] = await call('closeRun', [{ run: runs.import, identity, how: 'failed' }])
  expect(answer).toEqual({ refused: expect.stringContaining('acc_other') })
})
