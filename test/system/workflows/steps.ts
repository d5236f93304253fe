import type { Client } from '@temporalio/client'
import type { DataConverter } from '@temporalio/common'
import { DefaultLogger, NativeConnection, Worker } from '@temporalio/worker'
import { readFile } from 'node:fs/promises'
import { inject, onTestFinished } from 'vitest'
import type { Activities } from '../../../activities/index.ts'
import { installRuntime } from '../../../worker/telemetry/log.ts'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'
import { connectTemporal } from '../export/world.ts'

// A test tells what failed; the SDK's own log of it is pages long.
await installRuntime({ logger: new DefaultLogger('ERROR'), level: 'error', metrics: false })

/** Stand-ins for the activities that a test's workflows call, so that the test decides when each ends and how. */
export type Steps = { [Name in keyof Activities]?: (...args: never[]) => unknown }

export const workflowCode = async (): Promise<string> => readFile(await prepareWorkflowBundle(), 'utf8')

let queues = 0

/** The real workflows on a real server, with stand-ins for their activities. */
export async function startSteps(
  steps: Steps,
  options: { code?: string; taskQueue?: string; dataConverter?: DataConverter } = {},
) {
  queues += 1
  const { code = await workflowCode(), taskQueue = `steps-${process.pid}-${queues}` } = options
  const client: Client = await connectTemporal()
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') })
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle: { code },
    dataConverter: options.dataConverter ?? {},
    activities: steps,
    maxHeartbeatThrottleInterval: '100ms',
    stickyQueueScheduleToStartTimeout: '1s',
    shutdownForceTime: '5s',
  })
  const ended = worker.run()
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    worker.shutdown()
    await ended
    await connection.close()
  }
  onTestFinished(stop)
  return { client, taskQueue, stop }
}

/**
 * Instead of ten seconds: a worker says nothing of a task that fails again, and Temporal waits for it that long before it
 * gives the task to another attempt.
 */
export const workflowTaskTimeout = '3s'

/** A promise that a test settles. */
export function gate<T = void>() {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  return { promise, open: resolve, fail: reject }
}

/** A list that is read at once. */
export const readSteps = {
  planRead: () => ({ ranges: 1, left: [{ range: 0, records: 0, requests: 0 }], records: 0, requests: 0 }),
  readRange: () => ({ ended: 'whole', records: 3, requests: 1 }),
  finishRead: () => ({ ended: { verdict: 'proven', checkpoint: '1' }, records: 3, requests: 1 }),
} satisfies Steps

const none = { staged: 0, done: 0, rejected: 0, unknown: 0, parked: 0, skipped: 0, notTried: 0 }
export const countsOf = (counts: Partial<typeof none> = {}) => ({ ...none, ...counts })

const identity = { workspace: 'acc_steps', baseUrl: 'https://billing.example', mode: 'test', store: 'store' }

export const importPlan = {
  run: 'import-steps',
  folder: 'imports/import-steps',
  identity,
  kind: 'addons',
  does: 'create',
  resource: 'addons',
  listed: false,
  file: 'input',
  limits: {},
  decided: { approval: false, canary: false },
  approval: false,
  confirmCanary: false,
  attended: false,
  dryRun: false,
  approvalWait: 600,
  notifies: [],
  searchAttributes: [],
}

export const recoveryPlan = {
  run: 'recover-steps',
  folder: 'recoveries/recover-steps',
  identity,
  limits: {},
  approval: false,
  attended: false,
  dryRun: false,
  approvalWait: 600,
  firstWait: 0.01,
  verifyAfter: 0.01,
  eventsPerExecution: 1_000,
  notifies: [],
  searchAttributes: [],
}

const preview = {
  byReason: {},
  byScheme: {},
  byNextBilling: {},
  today: '2026-11-21',
  needsPerson: {},
  notResumed: {},
  toResume: 3,
}
export const snapshot = {
  candidates: 3,
  open: 3,
  sent: 0,
  again: 0,
  canary: [],
  proven: true,
  reasons: [],
  preview,
  tables: [],
}
export const staged = {
  rows: 3,
  changes: 3,
  invalid: 0,
  open: 3,
  sent: 0,
  again: 0,
  canary: [],
  totals: { sums: {} },
  tables: [],
}

export const sendStep = (step: object = {}) => ({
  ended: 'finished',
  givenUp: [],
  breakers: {},
  openBreakers: [],
  claims: 0,
  endedAt: Date.now(),
  counts: countsOf({ done: 3 }),
  ...step,
})

const view = { title: 'a run' }

export const closedRun = (more: object = {}) => ({
  view,
  result: {
    run: importPlan.run,
    summary: '3 of 3 done; proven',
    verdict: 'proven',
    reasons: [],
    rows: {},
    files: {},
    counts: countsOf({ done: 3 }),
    ...more,
  },
})

export const exportPlan = (more: object = {}) => ({
  run: 'export-steps',
  identity,
  resources: ['plans'],
  to: ['csv'],
  notifies: [],
  searchAttributes: [],
  ...more,
})

export const closedExport = (more: object = {}) => ({
  view,
  report: {
    run: 'export-steps',
    summary: '1 of 1 proven complete, 3 records',
    verdict: 'proven',
    exports: [],
    ...more,
  },
})
