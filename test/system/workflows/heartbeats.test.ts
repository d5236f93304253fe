import { expect, test } from 'vitest'
import { heartbeatsAt } from '../../../worker/start-worker.ts'
import { closedExport, exportPlan, readSteps, startSteps } from './steps.ts'

test('steps heartbeat as the plan of their own run says', async () => {
  const { client, taskQueue } = await startSteps({
    openExport: (input: { to?: string[] }) => ({
      plan: exportPlan({ heartbeats: input.to?.[0] === 'parquet' ? 'remote' : 'local' }),
    }),
    ...readSteps,
    publishExport: () => ({ destination: 'csv', verdict: 'proven', reasons: [], warnings: [] }),
    closeExport: () => closedExport(),
  })
  const timeoutsOf = async (workflowId: string) => {
    const { events = [] } = await client.workflow.getHandle(workflowId).fetchHistory()
    return (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled ? [`${scheduled.activityType?.name} ${Number(scheduled.heartbeatTimeout?.seconds)}`] : [],
    )
  }
  const run = async (name: string, to: string) => {
    const workflowId = `${name}-${taskQueue}`
    await client.workflow.execute('exportData', { workflowId, taskQueue, args: [{ to: [to] }] })
    return await timeoutsOf(workflowId)
  }
  const local = [
    'openExport 5',
    'planRead 5',
    'readRange 5',
    'finishRead 5',
    'publishExport 30',
    'closeExport 5',
  ]
  const remote = [
    'openExport 5',
    'planRead 60',
    'readRange 60',
    'finishRead 60',
    'publishExport 60',
    'closeExport 60',
  ]
  expect(await run('near', 'csv')).toEqual(local)
  expect(await run('far', 'parquet')).toEqual(remote)
  expect(await run('near-again', 'csv')).toEqual(local)
})

test.each([
  [undefined, 'local'],
  ['localhost:7233', 'local'],
  ['127.0.0.1:7233', 'local'],
  ['[::1]:7233', 'local'],
  ['temporal:7233', 'local'],
  ['temporal.internal.example.com:7233', 'remote'],
  ['10.0.0.7:7233', 'remote'],
  ['[2001:db8::1]:7233', 'remote'],
  ['eu-central-1.aws.api.temporal.io:7233', 'remote'],
])('the server at %s is %s', (address, heartbeats) => {
  expect(heartbeatsAt(address)).toBe(heartbeats)
})
