import type { Client, WorkflowHandle } from '@temporalio/client'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { Fault } from '../../../sandbox/faults.ts'
import { type DevServer, startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { mayMount, putOnDisk } from '../export/full-disk.ts'
import {
  asked,
  connectTemporal,
  openTestWorker,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { reset } from '../import/world.ts'
import { failureOf } from '../recovery/world.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'

/** One run of a job against a service of its own, slow enough from some request on that nothing outruns a test. */
export interface Job {
  world: World
  /** What the job is started with. */
  input: object
  /** Starts the job, or starts it again as people do after `before` has ended. */
  start(client: Client, before?: WorkflowHandle): Promise<WorkflowHandle>
  /** How often the service was asked for what the job is about. */
  work(): number
  /** Fails unless the result is proven and all of the work is done, each part of it once. */
  expectDone(result: unknown): void | Promise<void>
}

export interface JobKind {
  workflow: string
  open(): Promise<Job>
  /** For the worker. */
  env?: Record<string, string>
  /** What the report says of a run that was stopped. */
  stopped: object
  /** The signals and updates that the Temporal UI offers as buttons. */
  buttons: readonly string[]
}

/** The work that is done before a test interferes: the service is slow from a later request on. */
const someWork = 12

/** From this request on, what is asked by `on` takes seconds: a run cannot end before a test has interfered. */
export const slowFrom = (on?: string): Fault => ({
  kind: 'latency',
  ms: 1_500,
  from: 30,
  ...(on !== undefined && { on }),
})

/** The promises that every job keeps when people or machines interrupt it. */
export function describeJob(name: string, kind: JobKind): void {
  const hurry = ({ world }: Job) => world.sandbox.control.setFaults({ faults: [] })
  const worked = (job: Job, more = someWork) => {
    const enough = job.work() + more
    return until(() => job.work() >= enough)
  }

  /** A run that has done some of its work, with a worker in this process. */
  async function begin() {
    const job = await kind.open()
    const client = await connectTemporal()
    const startWorker = async () => {
      const worker = await openTestWorker(job.world, kind.env)
      onTestFinished(() => worker.stop())
      return worker
    }
    const worker = await startWorker()
    const run = await job.start(client)
    await worked(job)
    return { job, client, worker, startWorker, run }
  }

  describe(`${name}, as every job`, () => {
    test('asks for nothing while it is paused, and resumes where it was', async () => {
      const { job, run } = await begin()
      await run.signal('pause')
      await until(async () => (await run.query<{ phase: string }>('status')).phase === 'paused')
      await until(async () => ((await run.describe()).raw.pendingActivities ?? []).length === 0)
      const paused = job.work()
      hurry(job)
      // Long enough for a run that did not wait: with a quick service it would have done the rest.
      await new Promise((resolve) => setTimeout(resolve, 500))
      expect(job.work()).toBe(paused)
      await run.signal('unpause')
      await job.expectDone(await run.result())
    })

    test.each(['stop', 'Request Cancellation'])(
      'ends on %s with a report, does nothing after it, and leaves the rest to the next run',
      async (how) => {
        const { job, client, worker, startWorker, run } = await begin()
        await (how === 'stop' ? run.signal('stop') : run.cancel())
        const report = await run.result()
        expect(report).toMatchObject(kind.stopped)
        const reported = job.work()
        hurry(job)
        // It awaits what is still at work.
        await worker.stop()
        expect(job.work()).toBe(reported)
        await startWorker()
        await job.expectDone(await (await job.start(client, run)).result())
      },
    )

    test('leaves nothing that stands in the way of the next run when it is terminated', async () => {
      const { job, client, run } = await begin()
      await run.terminate()
      hurry(job)
      await job.expectDone(await (await job.start(client, run)).result())
    })

    test('resumes where it was when somebody presses Reset', async () => {
      const { job, client, run } = await begin()
      await reset({ client, workflowId: run.workflowId })
      hurry(job)
      await job.expectDone(await client.workflow.getHandle(run.workflowId).result())
    })

    test('resumes after a SIGKILL of its worker', { tags: ['long'] }, async () => {
      const job = await kind.open()
      const worker = await startWorkerProcess(job.world, kind.env)
      const run = await job.start(await connectTemporal())
      await worked(job)
      await kill(worker)
      await startTestWorker(job.world, kind.env)
      hurry(job)
      await job.expectDone(await run.result())
    })

    test(
      'is not done twice by a worker that is frozen, given up on and woken again',
      { tags: ['long'] },
      async () => {
        const job = await kind.open()
        const worker = await startWorkerProcess(job.world, { BILLING_TIMEOUT_SECONDS: '2', ...kind.env })
        const run = await job.start(await connectTemporal())
        await worked(job)
        worker.kill('SIGSTOP')
        const attempts = async () =>
          (await run.describe()).raw.pendingActivities?.map(({ attempt }) => attempt ?? 0) ?? []
        await until(async () => (await attempts()).some((attempt) => attempt > 1))
        hurry(job)
        worker.kill('SIGCONT')
        await job.expectDone(await run.result())
      },
    )

    test(
      'resumes after an outage of Temporal, whose server is killed and started again',
      { tags: ['long'] },
      async () => {
        const job = await kind.open()
        const { dataDir } = job.world
        const binary = () => Promise.resolve(inject('temporalBinary'))
        let server: DevServer = await startDevServer({ dataDir, binary })
        onTestFinished(() => server.stop())
        const { address, uiUrl, pid } = server
        const env = { ...job.world.env, TEMPORAL_ADDRESS: address }
        await startTestWorker({ ...job.world, env }, kind.env)
        const run = await job.start(await connectTemporal(server))
        await worked(job)
        process.kill(pid, 'SIGKILL')
        await server.stop()
        // What is under way ends while nobody can be told.
        hurry(job)
        await worked(job, 1)
        const ports = { grpc: Number(address.split(':')[1]), ui: Number(new URL(uiUrl).port) }
        server = await startDevServer({ dataDir, binary, choosePorts: () => Promise.resolve(ports) })
        await job.expectDone(await run.result())
      },
    )

    test.runIf(mayMount())(
      'ends with one sentence when its disk is full, and the next run does the rest when there is room',
      { tags: ['long'] },
      async () => {
        const job = await kind.open()
        const disk = putOnDisk(job.world.dataDir)
        await startTestWorker(job.world, kind.env)
        const client = await connectTemporal()
        const run = await job.start(client)
        await worked(job)
        disk.fill()
        hurry(job)
        expect((await failureOf(run))?.message).toMatch(/^[^\n]*(the disk is full|No space left)[^\n]*\.$/)
        disk.free()
        await job.expectDone(await (await job.start(client, run)).result())
      },
    )

    test('refuses an unknown field and a wrong type with one sentence, before it asks or sends anything', async () => {
      const job = await kind.open()
      await startTestWorker(job.world, kind.env)
      const client = await connectTemporal()
      const [field = ''] = Object.keys(job.input)
      const wrong = [
        ['object', 'a text'],
        ['"colour"', { ...job.input, colour: 'red' }],
        [field, { ...job.input, [field]: { not: 'this' } }],
      ] as const
      const { taskQueue, workspace } = job.world
      const refused = wrong.map(async ([names, input], number) => {
        const workflowId = `refused-${workspace}-${number}`
        const failure = await failureOf(
          await client.workflow.start(kind.workflow, { workflowId, taskQueue, args: [input] }),
        )
        expect(failure).toMatchObject({ type: 'InvalidInput' })
        expect(failure?.message).toMatch(/^[^\n]+[.?]$/)
        expect(failure?.message).toContain(names)
      })
      await Promise.all(refused)
      expect(asked(job.world)).toBe(0)
      hurry(job)
      await job.expectDone(await (await job.start(client)).result())
    })

    test('names its workspace and mode in its current details, says what each button does, waits for a service that is down, and resumes', async () => {
      const { job, run } = await begin()
      const { definition, currentDetails } = await run.query<{
        definition: Record<'signalDefinitions' | 'updateDefinitions' | 'queryDefinitions', Described[]>
        currentDetails: string
      }>('__temporal_workflow_metadata')
      expect(currentDetails).toContain(`**LIVE** ${job.world.workspace}`)
      const { signalDefinitions, updateDefinitions, queryDefinitions } = definition
      const buttons = [...signalDefinitions, ...updateDefinitions]
      expect(buttons.map((one) => one.name).toSorted()).toEqual(kind.buttons)
      const own = queryDefinitions.filter((one) => !one.name.startsWith('__'))
      expect([...buttons, ...own].filter(({ description }) => description.length <= 20)).toEqual([])
      const { control } = job.world.sandbox
      // More than are under way at once, so that some fail again.
      control.setFaults({ faults: [{ kind: 'error', status: 503, html: true, to: 6 }] })
      await job.expectDone(await run.result())
    })
  })
}

interface Described {
  name: string
  description: string
}
