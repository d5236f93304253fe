import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ImportResult } from '../../../core/imports/view.ts'
import { until, type World } from '../../system/export/world.ts'
import { putFile, retentionsCsv, sheetOf, startImport } from '../../system/import/world.ts'
import { openConsole, runOf, type Console } from './world.ts'

const rows = 120
/** PENDING_ACTIVITY_STATE_STARTED. */
const started = 2
const patient = { timeout: 180_000 }

let console: Console

beforeAll(async () => {
  console = await openConsole({
    counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 },
  })
})
afterAll(() => console.close())

/** The numbers of the retentions whose creation the service was asked for, as often as it was. */
function sent(world: World, from: number): number[] {
  return world.sandbox.control
    .requests()
    .flatMap(({ method, url, body = '' }) =>
      method === 'POST' && url.endsWith('/retentions/')
        ? [(JSON.parse(body) as { number: number }).number]
        : [],
    )
    .filter((number) => number >= from && number < from + rows)
}

/** An import that is in the middle of its file, with its page open; what is left takes a minute. */
async function begin(name: string, from: number) {
  const { world, client } = console
  const file = await putFile(world, retentionsCsv(rows, { from, mark: name }), `${name}.csv`)
  world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 500, on: 'POST /retentions/' }] })
  const input = { kind: 'retentions' as const, file, canary: 0, concurrency: 1 }
  const run = await startImport({ client, world, name, input })
  const ui = await console.openUi()
  await ui.open(name)
  await until(() => sent(world, from).length >= 5)
  return { run, ui }
}

/** The result of the execution that is there now; the service is quick again once it is this one that sends. */
async function finish(name: string, from: number): Promise<ImportResult> {
  const { world, client } = console
  const run = runOf(client, name)
  await until(async () => {
    const { pendingActivities } = (await run.describe()).raw
    return (pendingActivities ?? []).some(
      ({ activityType, state }) => activityType?.name === 'sendRun' && Number(state) === started,
    )
  })
  const before = sent(world, from).length
  await until(() => sent(world, from).length > before + 1)
  expect(sent(world, from).length).toBeLessThan(rows)
  world.sandbox.control.setFaults({ faults: [] })
  return await run.result()
}

/** Each row was sent once and is there once, under the id that the results say. */
async function expectOnceEach(result: ImportResult, from: number): Promise<void> {
  const { world } = console
  expect(result).toMatchObject({
    verdict: 'proven',
    counts: { done: rows, unknown: 0, parked: 0, staged: 0 },
  })
  const numbers = Array.from({ length: rows }, (_, index) => from + index)
  expect(sent(world, from).toSorted((a, b) => a - b)).toEqual(numbers)
  const made = [...world.sandbox.control.records({ resource: 'retentions' })]
    .map((text) => JSON.parse(text) as { id: string | number; number: number })
    .filter(({ number }) => number >= from && number < from + rows)
    .map(({ id, number }) => `${number} ${id}`)
  const said = (await sheetOf(result, 'results')).map((row) => `${row['number']} ${row['_id']}`)
  expect(said.toSorted()).toEqual(made.toSorted())
}

test(
  'Request Cancellation ends an import with a true report, and one like it sends only the rest',
  patient,
  async () => {
    const { world, client } = console
    const from = 1_000
    const { run, ui } = await begin('import-april', from)
    await ui.requestCancellation()
    const stopped = await run.result()
    expect(stopped).toMatchObject({ verdict: 'unproven', ended: { how: 'stopped' }, counts: { unknown: 0 } })
    const before = sent(world, from).length
    expect(before).toBeLessThan(rows)
    expect(stopped.counts).toMatchObject({ done: before, staged: rows - before })
    await ui.open('import-april')
    await ui.detailsSay(stopped.summary)
    const runId = await ui.startLikeThis({ holding: 'import-april.csv' })
    expect(runId).not.toBe(run.firstExecutionRunId)
    await until(() => sent(world, from).length > before)
    const { searchAttributes } = await runOf(client, 'import-april').describe()
    // What the UI took over from the one that was stopped is not said of this one.
    expect(searchAttributes['Verdict']?.[0] ?? 'none').toBe('none')
    await expectOnceEach(await finish('import-april', from), from)
  },
)

test(
  'Terminate in the middle of an import and a start of the same again send nothing twice',
  patient,
  async () => {
    const from = 2_000
    const { run, ui } = await begin('import-may', from)
    await ui.terminate()
    await expect(run.result()).rejects.toMatchObject({ cause: { name: 'TerminatedFailure' } })
    await ui.open('import-may')
    const runId = await ui.startLikeThis({ holding: 'import-may.csv' })
    expect(runId).not.toBe(run.firstExecutionRunId)
    await expectOnceEach(await finish('import-may', from), from)
  },
)

test(
  'Reset in the middle of an import does it again from the start and sends nothing twice',
  patient,
  async () => {
    const { client } = console
    const from = 3_000
    const { run, ui } = await begin('import-june', from)
    await ui.reset('reset')
    const again = runOf(client, 'import-june')
    await until(async () => (await again.describe()).runId !== run.firstExecutionRunId)
    await expectOnceEach(await finish('import-june', from), from)
  },
)
