import { once } from 'node:events'
import { expect, test } from 'vitest'
import {
  asked,
  connectTemporal,
  createWorld,
  startCommand,
  startRun,
  startTestWorker,
  until,
} from '../export/world.ts'
import { breakSome, idsOf, quick, startRecovery } from '../recovery/world.ts'

type Place = Pick<Parameters<typeof startRun>[0], 'client' | 'world'>

/** Runs that check the service first. */
const starts = [
  (place: Place) => startRun({ ...place, input: { resources: ['plans'] } }),
  (place: Place) => startRecovery({ ...place, input: quick }),
]

async function killWhileItChecks(start: (typeof starts)[number]): Promise<void> {
  const world = await createWorld({
    counts: { customers: 5, subscriptions: 10, plans: 5, retentions: 0 },
    needsAttention: 0,
    faults: [{ kind: 'latency', ms: 60_000 }],
  })
  breakSome(world, { ids: idsOf(world).slice(0, 3), reason: 'gateway_issue' })
  const worker = startCommand(world, ['worker'])
  await worker.says('listening')
  const run = await start({ client: await connectTemporal(), world })
  await until(() => asked(world) > 0)
  const exited = once(worker.child, 'exit')
  worker.child.kill('SIGKILL')
  await exited
  const before = asked(world)
  // Longer than Temporal waits for a sign of life and for another try: a check that only takes its time gives them.
  world.sandbox.control.setFaults({ faults: [{ kind: 'latency', ms: 10_000 }] })
  await startTestWorker(world)
  const isAnswered = () => world.sandbox.control.requests()[before]?.status !== undefined
  await until(() => asked(world) > before && isAnswered())
  expect(asked(world)).toBeLessThanOrEqual(before + 2)
  const tries = world.sandbox.control.requests().slice(before)
  expect(tries.filter(({ url }) => url === tries[0]?.url)).toHaveLength(1)
  world.sandbox.control.setFaults({ faults: [] })
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
}

test(
  'an export and a recovery whose worker is killed while it checks the service continue within seconds, and a slow check is not given up',
  { tags: ['long'] },
  // At once: they wait for most of their time.
  () => Promise.all(starts.map(killWhileItChecks)),
)
