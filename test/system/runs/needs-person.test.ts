import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { addonsCsv, putFile, retentionsCsv } from '../import/world.ts'
import { breakSome, idsOf, quick, startRecovery } from '../recovery/world.ts'

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

test('runs no longer lists a run as needing a person once another run has done its rows, or its successor is proven', async () => {
  const world = await createWorld({
    counts,
    needsAttention: 0,
    faults: [
      { kind: 'refuse', answer: { number: ['Not this one.'] }, on: 'POST /retentions/', body: { number: 5 } },
      { kind: 'refuse', answer: { name: ['Not this one.'] }, on: 'POST /addons/', body: { name: 'Addon 2' } },
    ],
  })
  await startTestWorker(world, soon)
  const client = await connectTemporal()
  const run = async (...words: string[]) => (await tell<{ run: string }>(world, ...words)).run
  const importRows = async (kind: string, text: string, ...words: string[]) =>
    run('import', kind, join(world.dataDir, await putFile(world, text, `${kind}.csv`)), ...words)
  const recover = async () => {
    const { run } = await (await startRecovery({ client, world, input: quick })).result()
    return run
  }
  const haveEnded = async (number: number) => {
    const { runs } = await tell<Listed>(world, 'run', 'list')
    return runs.length === number && runs.every(({ verdict }) => verdict !== null)
  }
  const ids = breakSome(world, { ids: idsOf(world).slice(0, 1), reason: 'reference_expired' })
  const sheet = retentionsCsv(6)
  const left = await importRows('addons', addonsCsv(3))
  const needing = [
    left,
    await importRows('retentions', sheet),
    await run('export', 'customers', '--max-pages', '1'),
    await recover(),
  ]
  await until(async () => await haveEnded(needing.length))
  expect(await inNeed(world)).toEqual(needing.toSorted())

  for (const id of ids)
    world.sandbox.control.update({
      resource: 'subscriptions',
      id,
      fields: { status: 'active', needs_attention: null, needs_attention_reason: null },
    })
  await importRows('retentions', sheet.replace(',5,2026', ',105,2026'), '--done', 'skip')
  await run('export', 'customers')
  await recover()
  await until(async () => await haveEnded(needing.length + 3))
  // Nobody has imported the refused addon.
  expect(await inNeed(world)).toEqual([left])
})
