import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asked, folderOf, startRun, until } from '../../system/export/world.ts'
import {
  addonsCsv,
  once,
  posts,
  putFile,
  retentionsCsv,
  startImport,
  timesOf,
} from '../../system/import/world.ts'
import { breakSome, idsOf, resumesAsked } from '../../system/recovery/world.ts'
import { openConsole, runOf, type Console } from './world.ts'

const ana = { by: 'Ana', why: 'the gateway works again' }
const patient = { timeout: 180_000 }

let console: Console

beforeAll(async () => {
  console = await openConsole({
    counts: { customers: 10_000, subscriptions: 60, plans: 3, retentions: 0, addons: 0, orders: 0 },
    needsAttention: 0,
  })
})
afterAll(() => console.close())

test(
  'an operator recovers subscriptions from the Temporal UI: start form, preview, approval, stop',
  patient,
  async () => {
    const { world, client } = console
    const ui = await console.openUi()
    const { taskQueue } = world
    const broken = breakSome(world, { ids: idsOf(world).slice(0, 12), reason: 'gateway_issue' })
    const recover = { workflowId: 'recover-today', taskQueue, workflowType: 'recoverSubscriptions' }
    await ui.start({ ...recover, shot: 'start' })
    await ui.open('recover-today')
    await ui.detailsSay('waiting for a person')
    await ui.detailsSay('charge_payment')
    await ui.picture('preview')
    expect(resumesAsked(world)).toEqual([])
    const slow = { kind: 'latency', ms: 25_000, on: 'POST /subscriptions/{id}/resume/' } as const
    world.sandbox.control.setFaults({ faults: [slow] })
    await ui.update('approve', ana, 'approve')
    // The first ones are on their way until the stop was pressed; no other follows.
    await until(() => resumesAsked(world).length > 0)
    await ui.signal('stop')
    world.sandbox.control.setFaults({ faults: [] })
    world.sandbox.control.landLateEffects()
    const recovery = client.workflow.getHandle('recover-today')
    // A second one does not wait; it may have ended by then.
    await recovery.signal('stop').catch(() => undefined)
    await recovery.result()
    expect(resumesAsked(world).length).toBeLessThan(12)
    expect(new Set(resumesAsked(world)).size).toBe(resumesAsked(world).length)
    expect(broken).toEqual(expect.arrayContaining(resumesAsked(world)))
  },
)

test(
  'an operator reads what an import would send, approves it, and each row is sent once',
  patient,
  async () => {
    const { world, client } = console
    const ui = await console.openUi()
    const file = await putFile(world, retentionsCsv(30), 'march.csv')
    const input = { kind: 'retentions', file, approval: true }
    const march = { workflowId: 'import-march', taskQueue: world.taskQueue, workflowType: 'importFile' }
    await ui.start({ ...march, input, shot: 'start-import' })
    await ui.open('import-march')
    await ui.detailsSay('waiting for a person')
    await ui.detailsSay('Nothing was sent yet')
    await ui.detailsSay('Import of retentions from march.csv')
    await ui.detailsSay('30 rows')
    // The sum of the file's totals, 1.50 to 30.50.
    await ui.detailsSay('480.00')
    await ui.picture('import-waits')
    expect(await ui.detailsFit()).toBe(true)
    expect(timesOf(world, 'retentions', 30)).toEqual(Array.from({ length: 30 }, () => 0))
    await ui.update('approve', { by: 'Ana', why: 'the totals are those of the sheet' })
    const result = await runOf(client, 'import-march').result()
    expect(result).toMatchObject({ verdict: 'proven', counts: { done: 30 } })
    expect(timesOf(world, 'retentions', 30)).toEqual(once(30))
    const report = await readFile(result.files.report ?? '', 'utf8')
    expect(JSON.parse(report)).toMatchObject({ decisions: [{ about: 'approval', by: 'Ana' }] })
    await ui.open('import-march')
    await ui.detailsSay(result.summary)
  },
)

test(
  'an operator pauses an export in the middle, nothing is asked in the meantime, and it is proven',
  patient,
  async () => {
    const { world, client } = console
    const ui = await console.openUi()
    world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 1_500 }] })
    const name = 'export-customers'
    const run = await startRun({ client, world, name, input: { resources: ['customers'] } })
    const before = asked(world)
    await until(() => asked(world) > before + 4)
    await ui.open(name)
    await ui.detailsSay('running')
    await ui.signal('pause', 'pause')
    // What was on its way has ended when the read's activity has.
    await until(async () => ((await run.describe()).raw.pendingActivities ?? []).length === 0)
    const paused = asked(world)
    // It was asked to end, and did not merely come to the end of its part.
    const { events } = await run.fetchHistory()
    expect(events?.some((event) => event.activityTaskCanceledEventAttributes)).toBe(true)
    // On a busy machine, the page behind the signal's form may be another one when it is loaded again.
    await ui.open(name)
    await ui.detailsSay('paused')
    await ui.picture('export-paused')
    expect(asked(world)).toBe(paused)
    // Read to the end, it would have asked 100 times at least.
    expect(paused - before).toBeLessThan(90)
    world.sandbox.control.setFaults({ faults: [] })
    await ui.open(name)
    await ui.signal('unpause')
    const report = await run.result()
    expect(report).toMatchObject({ verdict: 'proven' })
    expect(folderOf(report, 'customers')).toContain('exports/customers')
    expect(asked(world)).toBeGreaterThan(paused)
  },
)

test('an operator resolves a row whose answer was lost, and the report says who did', patient, async () => {
  const { world, client } = console
  const ui = await console.openUi()
  const file = await putFile(world, addonsCsv(25), 'addons.csv')
  // The second of the canary never arrives, and an addon can't be looked up.
  const lost = { kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [2] } as const
  world.sandbox.control.setFaults({ faults: [lost] })
  const input = { kind: 'addons' as const, file, concurrency: 1, confirmCanary: true }
  const run = await startImport({ client, world, name: 'import-addons', input })
  await ui.open('import-addons')
  await ui.detailsSay('waiting for a person')
  await ui.detailsSay(/Parked: row \d+/)
  await ui.picture('import-parked')
  const row = (await run.query<{ parkedRows: number[] }>('status')).parkedRows[0]
  const word = { row, absent: true, by: 'Ana', why: 'not in the list of addons' }
  await ui.update('resolve', word, 'resolve')
  await ui.update('approve', { by: 'Ana', why: 'the others arrived' })
  const result = await run.result()
  // The answer says nothing of the first request, which Ana took for lost.
  expect(result).toMatchObject({ verdict: 'unproven', inDoubt: false, counts: { done: 25, parked: 0 } })
  expect(timesOf(world, 'addons', 25)).toEqual(once(25))
  const report = await readFile(result.files.report ?? '', 'utf8')
  const { decisions } = JSON.parse(report) as { decisions: object[] }
  expect(decisions).toContainEqual(expect.objectContaining({ about: 'row', row, by: 'Ana', why: word.why }))
})

test('an operator presses Reset in the middle of an import, and each row is sent once', patient, async () => {
  const { world, client } = console
  const ui = await console.openUi()
  // Names of their own: the import above has sent the others.
  const file = await putFile(world, retentionsCsv(60, { from: 1_000, mark: 'Junio' }), 'june.csv')
  world.sandbox.control.setFaults({
    faults: [{ kind: 'latency', ms: 1_500, on: 'POST /retentions/', from: 8 }],
  })
  const sent = () => posts(world) - before
  const before = posts(world)
  const input = { kind: 'retentions' as const, file, canary: 0, concurrency: 1 }
  const run = await startImport({ client, world, name: 'import-june', input })
  await ui.open('import-june')
  await until(() => sent() >= 5)
  await ui.reset('reset')
  await until(async () => (await runOf(client, 'import-june').describe()).runId !== run.firstExecutionRunId)
  expect(sent()).toBeLessThan(60)
  world.sandbox.control.setFaults({ faults: [] })
  expect(await runOf(client, 'import-june').result()).toMatchObject({
    verdict: 'proven',
    counts: { done: 60 },
  })
  expect(sent()).toBe(60)
})

test('an operator finds the runs that ended proven by their verdict, and no other', patient, async () => {
  const { world, client } = console
  const ui = await console.openUi()
  const proven = await startRun({ client, world, name: 'export-plans', input: { resources: ['plans'] } })
  await proven.result()
  const unproven = await startRun({
    client,
    world,
    name: 'export-two-pages',
    input: { resources: ['customers'], maxPages: 2 },
  })
  await unproven.result()
  await ui.showColumns(['Status', 'Workflow ID', 'Verdict', 'NeedsPerson', 'Resource', 'Start'])
  const query = 'Verdict = "proven" AND WorkflowType = "exportData"'
  const listed = await ui.listed({ query, until: ['export-plans', 'export-customers'] })
  expect(listed.toSorted()).toEqual(['export-customers', 'export-plans'])
  await ui.picture('verdict')
  const others = await ui.listed({ query: 'Verdict = "unproven"', until: ['export-two-pages'] })
  expect(others).toContain('export-two-pages')
  expect(others).not.toContain('export-plans')
})
