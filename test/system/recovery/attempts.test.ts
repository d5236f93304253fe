import { expect, test } from 'vitest'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { begin, breakSome, idsOf, quick, resume, resumesAsked, startRecovery, well } from './world.ts'
import { startSteps } from '../workflows/steps.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'

const seed = 20_261_122
const falling = { kind: 'fallBack', on: resume, rate: 0.4 } as const

/** Subscriptions by the number of resume requests that the service received for each. */
function timesAsked(world: World): Record<number, number> {
  const often = Map.groupBy(resumesAsked(world), (id) => id)
  const times = Map.groupBy(often.values(), ({ length }) => length)
  return Object.fromEntries([...times].map(([length, ids]) => [length, ids.length]))
}

/** A canary first, and a breaker that soon opens: both fall back like the rest. */
const brakes = { ...quick, canary: 5, maxFailureShare: 0.3, breakerWaits: ['20ms', '20ms', '20ms'] }

test.each([1, 2])(
  'a recovery with attempts %i sends no subscription more resumes, canary and breaker included, over all runs',
  { tags: ['long'] },
  async (attempts) => {
    const { world, start } = await begin({ broken: 40, sandbox: { seed, faults: [falling] } })
    for (let run = 1; run <= 4; run += 1) {
      await (await start({ ...brakes, attempts })).result()
      expect(Math.max(...Object.keys(timesAsked(world)).map(Number)), `after run ${run}`).toBeLessThanOrEqual(
        attempts,
      )
    }
  },
)

test(
  'a recovery that is stopped while its worker is gone looks up the subscriptions that it was resuming, and ends',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ ...well, seed, faults: [{ kind: 'latency', ms: 2_000, on: resume }] })
    breakSome(world, { ids: idsOf(world).slice(0, 6), reason: 'gateway_issue' })
    const env = { BILLING_SETTLE_SECONDS: '0.5' }
    const worker = await startWorkerProcess(world, env)
    const client = await connectTemporal()
    const input = { ...quick, canary: 0, concurrency: 2, verifyAfter: '100ms' }
    const run = await startRecovery({ client, world, input })
    await until(() => resumesAsked(world).length >= 2)
    await kill(worker)
    await run.signal('stop')
    // The workflow must know before the killed step is retried, because the retry would resume the others.
    const workflowsOnly = await startSteps({}, { taskQueue: world.taskQueue })
    await until(async () => {
      const { events } = await run.fetchHistory()
      const stop = events?.findIndex((event) => event.workflowExecutionSignaledEventAttributes) ?? -1
      return events?.slice(stop).some((event) => event.activityTaskCancelRequestedEventAttributes) === true
    })
    await workflowsOnly.stop()
    world.sandbox.control.setFaults({ faults: [] })
    await startTestWorker(world, env)
    expect(await run.result()).toMatchObject({
      ended: { how: 'stopped' },
      counts: { unknown: 0, done: 2, notTried: 4 },
    })
    expect(resumesAsked(world)).toHaveLength(2)
  },
)
