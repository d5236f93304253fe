import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { toDefinition } from '../../../scripts/schedules/file.ts'
import { ownerMemo, toTemporal } from '../../../scripts/schedules/schedules.ts'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { putFile, retentionsCsv } from '../import/world.ts'
import { openChannel } from '../notify/receiver.ts'
import { breakSome, idsOf } from '../recovery/world.ts'

const counts = { customers: 150, subscriptions: 4, plans: 3, retentions: 40, orders: 0 }
const soon = { BILLING_SETTLE_SECONDS: '0.1' }

async function tell<T>(world: World, ...words: string[]): Promise<T> {
  const { stdout } = await callCommand(world, [...words, '--json'], { env: soon })
  return JSON.parse(stdout) as T
}

interface Listed {
  runs: { run: string; verdict: string | null; needsPerson: boolean }[]
}

const namesOf = ({ runs }: Listed) => runs.map(({ run }) => run).toSorted()

/** The runs that need a person, as each of both lists shows them. */
async function inNeed(world: World): Promise<string[]> {
  const [filtered, all] = [
    await tell<Listed>(world, 'run', 'list', '--needs-person'),
    await tell<Listed>(world, 'run', 'list'),
  ]
  const marked = namesOf({ runs: all.runs.filter(({ needsPerson }) => needsPerson) })
  return JSON.stringify(namesOf(filtered)) === JSON.stringify(marked) ? marked : ['the lists differ']
}

/** A schedule that starts an export only when it is triggered. */
async function scheduleExport(world: World) {
  const client = await connectTemporal()
  const { workspace, taskQueue } = world
  const name = `${workspace}-nightly`
  const definition = toDefinition(
    { workflow: 'exportData', input: { resources: ['customers'] }, every: '2d' },
    'UTC',
  )
  const handle = await client.schedule.create({
    scheduleId: name,
    memo: ownerMemo({ taskQueue }),
    ...toTemporal({ name, definition, taskQueue }),
  })
  onTestFinished(() => handle.delete())
  return handle
}

const unordered = { kind: 'ignoreOrdering', on: 'GET /customers/' } as const

test('`run list` says of no run that it needs a person once its command or schedule was proven since', async () => {
  const world = await createWorld({ counts, needsAttention: 0 })
  const refused = { number: ['Not this one.'] }
  const refusal = { kind: 'refuse', answer: refused, on: 'POST /retentions/', body: { number: 5 } } as const
  world.sandbox.control.setFaults({ faults: [refusal, unordered] })
  await startTestWorker(world, soon)
  const nightly = await scheduleExport(world)
  const run = async (...words: string[]) => (await tell<{ run: string }>(world, ...words)).run
  const haveEnded = async (number: number) => {
    const { runs } = await tell<Listed>(world, 'run', 'list')
    return runs.length === number && runs.every(({ verdict }) => verdict !== null)
  }
  const ids = breakSome(world, { ids: idsOf(world).slice(0, 1), reason: 'reference_expired' })
  const sheet = await putFile(world, retentionsCsv(6), 'retentions.csv')
  const left = await run('import', 'retentions', join(world.dataDir, sheet))
  await callCommand(world, ['export', 'customers'], { env: soon })
  await run('recover', '--yes')
  await nightly.trigger()
  await until(async () => await haveEnded(4))
  expect(await inNeed(world)).toHaveLength(4)

  for (const id of ids)
    world.sandbox.control.update({
      resource: 'subscriptions',
      id,
      fields: { status: 'active', needs_attention: null, needs_attention_reason: null },
    })
  world.sandbox.control.setFaults({ faults: [refusal] })
  await run('export', 'customers')
  const capped = await run('export', 'customers', '--input', 'maxPages=1')
  await run('recover', '--yes')
  await nightly.trigger()
  await until(async () => await haveEnded(8))
  // Nobody has imported the refused row, and other bounds are another command.
  expect(await inNeed(world)).toEqual([left, capped].toSorted())
})

test('`run list` says of the last run of an import alone that it needs a person, until each row in doubt is resolved', async () => {
  const world = await createWorld({ counts, needsAttention: 0 })
  world.sandbox.control.setFaults({
    faults: [{ kind: 'reset', effect: 'done', on: 'POST /addons/', requests: [1, 2] }],
  })
  const receiver = await openChannel()
  await startTestWorker(world, { ...soon, NOTIFY_URL: `all=${receiver.url}` })
  const addons = async (rows: string, ...words: string[]) => {
    const sheet = await putFile(world, `name,description,currency,amount\n${rows}`, 'addons.csv')
    return await tell<{ run: string }>(world, 'import', 'addons', join(world.dataDir, sheet), ...words)
  }
  const { run } = await addons('A,a,CLP,1\nB,b,CLP,2\n')
  const resolve = ['run', 'resolve', run, '--why', 'a test', '--rows']
  await tell(world, ...resolve, '2', '--drop')
  await tell(world, 'run', 'watch', run)
  await expect.poll(() => inNeed(world)).toEqual([run])
  await tell(world, ...resolve, '3', '--exists', '77')
  await tell(world, 'run', 'watch', run)
  // Temporal's list of runs follows a little later.
  const verdicts = async () => (await tell<Listed>(world, 'run', 'list')).runs.map(({ verdict }) => verdict)
  await expect.poll(verdicts).toEqual(['unproven', 'unproven', 'unproven'])
  await expect.poll(() => inNeed(world)).toEqual([])
  const later = await addons('B,b,CLP,2\nC,c,CLP,3\n', '--done', 'skip')
  expect(later).toMatchObject({ reasons: ['1 resolved by a person in an earlier run'] })
  await expect.poll(() => inNeed(world)).toEqual([])
  await until(() => receiver.received.length === 4)
  expect(receiver.kinds()).toEqual(['parked', 'parked', 'ended', 'ended'])
})
