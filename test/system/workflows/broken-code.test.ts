import { Worker } from '@temporalio/worker'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, until } from '../export/world.ts'
import {
  exportPlan,
  closedExport,
  importPlan,
  readSteps,
  closedRun,
  recoveryPlan,
  sendStep,
  snapshot,
  staged,
  startSteps,
  workflowCode,
  workflowTaskTimeout,
  type Steps,
} from './steps.ts'

const missed = { schedule: 'nightly', at: '2026-11-20T02:00:00Z', by: '2026-11-20T06:00:00Z', reason: 'none' }
const publication = {
  resource: 'plans',
  destination: 'csv',
  verdict: 'proven',
  reasons: [],
  records: 3,
  warnings: [],
}

/** Each job, with a function that throws once its run is under way, inside every catch-all of that job. */
const jobs: Record<
  string,
  { input: object; /** What comes before the bug. */ breaks: string; steps: Steps }
> = {
  exportData: {
    input: {},
    breaks: 'async function notifyOfExport(ended) {',
    steps: {
      openExport: () => ({ plan: exportPlan() }),
      ...readSteps,
      publishExport: () => publication,
      closeExport: () => closedExport(),
    },
  },
  publishRun: {
    input: { run: 'export-steps' },
    breaks: 'async function publishEach(options) {',
    steps: {
      openPublish: () => ({ plan: exportPlan(), again: {}, checkpoints: { plans: '1' } }),
      publishExport: () => publication,
      closeExport: () => closedExport(),
    },
  },
  importFile: {
    input: {},
    breaks: 'async function prove({ plan, progress, show, control }, end) {',
    steps: {
      openRun: () => ({ ...importPlan, kind: 'retentions', listed: true }),
      stageRun: () => staged,
      sendRun: () => sendStep(),
      proveRun: () => ({}),
      closeRun: () => closedRun(),
    },
  },
  recoverSubscriptions: {
    input: {},
    breaks: 'function showStep(sending, segment) {',
    steps: {
      openRun: () => recoveryPlan,
      stageRun: () => snapshot,
      sendRun: () => sendStep(),
      closeRun: () => closedRun(),
    },
  },
  watchSchedules: {
    input: {},
    breaks: 'async function deliver(event) {\n    try {',
    steps: {
      findMissed: () => ({
        until: '2026-11-21T02:00:00Z',
        slots: 1,
        missed: [missed],
        notifies: ['missed'],
      }),
      sendNotification: () => 'told',
    },
  },
}

test.each(Object.keys(jobs))(
  'a bug in %s leaves its run open, and the run resumes and finishes on fixed code',
  { tags: ['long'] },
  async (workflow) => {
    const { input, breaks, steps } = jobs[workflow]!
    const good = await workflowCode()
    const broken = await startSteps(steps, { code: breakCode(good, breaks) })
    const { client, taskQueue } = broken
    const workflowId = `broken-${workflow}-${process.pid}`
    const run = await client.workflow.start(workflow, {
      workflowId,
      taskQueue,
      args: [input],
      workflowTaskTimeout,
    })
    const events = async () => (await run.fetchHistory()).events ?? []
    await until(async () =>
      (await events()).some(
        ({ workflowTaskFailedEventAttributes: failed }) => failed?.failure?.message === 'a bug',
      ),
    )
    expect(await run.describe()).toMatchObject({ status: { name: 'RUNNING' } })
    await broken.stop()
    await startSteps(steps, { code: good, taskQueue })
    expect(await run.result()).toMatchObject({ summary: expect.any(String) as string })
    // Nothing was told of the bug, and no report was written of it.
    const commands = (await events()).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === undefined ? [] : [scheduled.activityType.name],
    )
    expect(new Set(commands).size).toBe(commands.length)
    await Worker.runReplayHistory({ workflowBundle: { code: good } }, await run.fetchHistory(), workflowId)
  },
)

/** The workflow code with a TypeError at the place named, which is there once. */
function breakCode(code: string, place: string): string {
  if (code.split(place).length !== 2) throw new Error(`${place} is not once in the workflow code`)
  const bug = "(() => { throw new TypeError('a bug') })();"
  return code.replace(place, () => `${place} ${bug}`)
}

test(
  '`run show` and `run approve` say in one sentence that the worker has another version than the run began with',
  { tags: ['long'] },
  async () => {
    const steps = {
      openRun: () => ({ ...importPlan, approval: true }),
      stageRun: () => staged,
      closeRun: () => closedRun(),
    }
    const code = await workflowCode()
    const right = await startSteps(steps, { code })
    const { client, taskQueue } = right
    const run = await client.workflow.start('importFile', {
      workflowId: taskQueue,
      taskQueue,
      args: [{}],
      workflowTaskTimeout,
    })
    await until(async () => (await run.query<{ waitingFor?: object }>('status')).waitingFor !== undefined)
    await right.stop()
    await startSteps(steps, { code: code.replaceAll('.openRun.', '.stageRun.'), taskQueue })
    const world = await createWorld()
    const told = await Promise.all([
      callCommand(world, ['run', 'show', taskQueue]),
      callCommand(world, ['run', 'approve', taskQueue, '--why', 'the totals match']),
    ])
    const error = expect.stringMatching(
      new RegExp(
        `^error: The worker cannot resume ${taskQueue}, mostly because [^\\n]*another version[^\\n]*\\n? *[^\\n]*Go back to that version`,
        'm',
      ),
    ) as string
    expect(told).toMatchObject([
      { code: 2, stdout: '', stderr: error },
      { code: 2, stdout: '', stderr: error },
    ])
  },
)
