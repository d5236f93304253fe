import { Context, heartbeat } from '@temporalio/activity'
import type { Client } from '@temporalio/client'
import { expect, test } from 'vitest'
import type { ExportedItem, ExportReport } from '../../../core/exports/report.ts'
import { toExportView } from '../../../core/exports/view.ts'
import type { ExportProgress } from '../../../workflows/export-view.ts'
import { until } from '../export/world.ts'
import { closedExport, exportPlan, readSteps, startSteps, type Steps } from './steps.ts'

/** An activity that ends only when it is cancelled. */
function hanging(begun: string[], name: string) {
  return async () => {
    begun.push(name)
    const beat = setInterval(() => heartbeat(), 50)
    try {
      await Context.current().cancelled
    } finally {
      clearInterval(beat)
    }
  }
}

const publication = {
  resource: 'plans',
  destination: 'csv',
  verdict: 'proven',
  reasons: [],
  records: 3,
  warnings: [],
}

/** Gives what was closed as the report. */
const closeExport = ({ exports }: { exports: ExportedItem[] }) =>
  closedExport({ verdict: 'stopped', exports })

const ways = ['stop', 'Request Cancellation'] as const

async function begin(of: { workflow: string; steps: Steps; input?: object }) {
  const { workflow, steps, input = {} } = of
  const { client, taskQueue } = await startSteps(steps)
  const workflowId = `stops-${workflow}-${process.pid}-${(runs += 1)}`
  const run = await client.workflow.start(workflow, { workflowId, taskQueue, args: [input] })
  return { run, end: (how: string) => (how === 'stop' ? run.signal('stop') : run.cancel()) }
}
let runs = 0

test.each(ways)('an export that is publishing ends on %s, and publishes nothing more', async (how) => {
  const begun: string[] = []
  const steps = {
    openExport: () => ({ plan: exportPlan({ to: ['csv', 'duckdb'] }) }),
    ...readSteps,
    publishExport: async ({ destination }: { destination: string }) =>
      destination === 'csv' ? publication : hanging(begun, destination)(),
    closeExport,
  }
  const { run, end } = await begin({ workflow: 'exportData', steps })
  await until(() => begun.length > 0)
  await end(how)
  const report = (await run.result()) as ExportReport
  expect(report).toMatchObject({
    verdict: 'stopped',
    exports: [
      { resource: 'plans', destination: 'csv' },
      { resource: 'plans', destination: 'duckdb', verdict: 'stopped' },
    ],
  })
  expect(begun).toEqual(['duckdb'])
})

test('an export that is paused while it publishes starts publishing again after it is unpaused', async () => {
  const begun: string[] = []
  const steps = {
    openExport: () => ({ plan: exportPlan() }),
    ...readSteps,
    publishExport: async () => (begun.length === 0 ? hanging(begun, 'csv')() : publication),
    closeExport,
  }
  const { run } = await begin({ workflow: 'exportData', steps })
  await until(() => begun.length > 0)
  await run.signal('pause')
  await until(async () => (await run.query<{ phase: string }>('status')).phase === 'paused')
  await run.signal('unpause')
  expect(await run.result()).toMatchObject({ exports: [{ destination: 'csv' }] })
})

test.each(ways)('a run that publishes again ends on %s, with a report', async (how) => {
  const begun: string[] = []
  const steps = {
    openPublish: () => ({ plan: exportPlan(), again: {}, checkpoints: { plans: '1' } }),
    publishExport: hanging(begun, 'csv'),
    closeExport,
  }
  const { run, end } = await begin({ workflow: 'publishRun', steps, input: { run: 'export-steps' } })
  await until(() => begun.length > 0)
  await end(how)
  expect(await run.result()).toMatchObject({
    verdict: 'stopped',
    exports: [{ resource: 'plans', destination: null, verdict: 'stopped' }],
  })
})

const openings = [
  ['exportData', 'openExport', 'Stopped before anything was read'],
  ['fetchDocuments', 'openFetch', 'Stopped before anything was read'],
  ['publishRun', 'openPublish', 'Stopped before anything was published'],
  ['importFile', 'openRun', 'Stopped before the file was read; this execution sent nothing.'],
  ['recoverSubscriptions', 'openRun', 'Stopped before anything was read; this execution resumed nothing.'],
  ['watchSchedules', 'findMissed', 'Stopped before its check; the next one covers the same time.'],
] as const

test.each(openings.flatMap((one) => ways.map((how) => [...one, how] as const)))(
  '%s ends while %s runs, which ends too: %s (%s)',
  async (workflow, step, says, how) => {
    const begun: string[] = []
    const { run, end } = await begin({ workflow, steps: { [step]: hanging(begun, step) } })
    await until(() => begun.length > 0)
    await end(how)
    const said = await run.result().then(
      async (report) => {
        const { phase, summary } = await run.query<ExportProgress>('status')
        expect([phase, summary, toExportView(report as ExportReport).verdict?.headline]).toEqual([
          'ended',
          says,
          says,
        ])
        return (report as ExportReport).summary
      },
      (error: Error) => (error.cause as Error).message,
    )
    expect(said).toBe(says)
    const { events } = await run.fetchHistory()
    expect(events?.some((event) => event.activityTaskCanceledEventAttributes)).toBe(true)
    expect(events?.some((event) => event.startChildWorkflowExecutionInitiatedEventAttributes)).toBe(false)
  },
)

test('a stop that arrives while an attempt fails ends the run as stopped, and not as failed', async () => {
  const begun: string[] = []
  const steps = {
    openExport: async () => {
      await hanging(begun, 'open')().catch(() => undefined)
      throw new Error('the service is away')
    },
  }
  const { run, end } = await begin({ workflow: 'exportData', steps })
  await until(() => begun.length > 0)
  await end('stop')
  expect(await run.result()).toMatchObject({ verdict: 'stopped' })
})

test('a stop at any moment around the first step that reads is heard', { tags: ['long'] }, async () => {
  const begun: string[] = []
  const signalled: Promise<void>[] = []
  let client: Client | undefined
  const steps = {
    // The read is started a few milliseconds after this has ended.
    openExport: () => {
      const { workflowId } = Context.current().info.workflowExecution!
      const delay = Number(workflowId.split('-').at(-1))
      const stop = () => client!.workflow.getHandle(workflowId).signal('stop')
      signalled.push(new Promise((resolve) => setTimeout(resolve, delay)).then(stop))
      return { plan: exportPlan() }
    },
    planRead: hanging(begun, 'read'),
    closeExport,
  }
  const started = await startSteps(steps)
  client = started.client
  const { taskQueue } = started
  const delays = Array.from({ length: 24 }, (_, at) => at * 2)
  const handles = await Promise.all(
    delays.map((delay) =>
      started.client.workflow.start('exportData', {
        workflowId: `stops-early-${process.pid}-${delay}`,
        taskQueue,
        args: [{}],
      }),
    ),
  )
  const reports = await Promise.all(handles.map((run) => run.result()))
  expect(reports.map((report) => (report as ExportReport).verdict)).toEqual(delays.map(() => 'stopped'))
  await Promise.all(signalled)
})
