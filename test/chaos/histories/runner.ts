import { Context, type Info } from '@temporalio/activity'
import { Client, Connection } from '@temporalio/client'
import { DefaultLogger, NativeConnection, Worker } from '@temporalio/worker'
import { createActivities } from '../../../activities/index.ts'
import { toDataConverter } from '../../../worker/codec/payload-codec.ts'
import { installRuntime } from '../../../worker/telemetry/log.ts'
import { loadWorkflowBundle } from '../../../worker/workflow-bundle.ts'
import type { StepName } from './worker.ts'

/** A try of a step, as Temporal hands it to a worker. */
export interface Task {
  name: StepName
  input: unknown
  info: Info
  heartbeat: (details: unknown) => void
  cancelled: AbortSignal
}

export type CarryOut = (task: Task) => Promise<unknown>

const stepNames = Object.keys(createActivities({} as Parameters<typeof createActivities>[0])) as StepName[]

export type Runner = Awaited<ReturnType<typeof openRunner>>

/**
 * The real workflows on a real server, for many histories at once. Each history carries out its own steps, so that it
 * decides which of them is lost, and when.
 */
export async function openRunner({ address }: { address: string }) {
  await installRuntime({ logger: new DefaultLogger('ERROR'), level: 'error', metrics: false })
  const histories = new Map<string, CarryOut>()
  const activities = Object.fromEntries(
    stepNames.map((name) => [
      name,
      (input: unknown) => {
        const context = Context.current()
        const { info, cancellationSignal: cancelled } = context
        const [history = ''] = /^[^-]*/.exec(info.workflowExecution?.workflowId ?? '') ?? []
        const carryOut = histories.get(history)
        if (carryOut === undefined) throw new Error(`no history has the name ${history}`)
        return carryOut({ name, input, info, heartbeat: (details) => context.heartbeat(details), cancelled })
      },
    ]),
  )
  const client = new Client({ connection: await Connection.connect({ address }) })
  const connection = await NativeConnection.connect({ address })
  const taskQueue = `chaos-${process.pid}-${Date.now()}`
  const rangeQueue = `${taskQueue}-ranges`
  const common = {
    connection,
    activities,
    dataConverter: toDataConverter([]),
    maxHeartbeatThrottleInterval: '100ms',
    shutdownForceTime: '5s',
    maxConcurrentActivityTaskExecutions: 500,
  } as const
  const workers = [
    await Worker.create({
      ...common,
      taskQueue,
      workflowBundle: await loadWorkflowBundle({ encodesFailures: false }),
      maxCachedWorkflows: 200,
    }),
    await Worker.create({ ...common, taskQueue: rangeQueue }),
  ]
  const ended = Promise.all(workers.map((worker) => worker.run()))
  return {
    client,
    taskQueue,
    rangeQueue,
    /** From then on, `carryOut` gets the steps of all workflows whose ids begin with `history` and a hyphen. */
    join: (history: string, carryOut: CarryOut) => void histories.set(history, carryOut),
    leave: (history: string) => void histories.delete(history),
    async [Symbol.asyncDispose]() {
      for (const worker of workers) worker.shutdown()
      await ended
      await connection.close()
      await client.connection.close()
    },
  }
}
