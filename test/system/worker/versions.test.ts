import { expect, test } from 'vitest'
import { connectTemporal, createWorld, startRun, startTestWorker, until } from '../export/world.ts'

test('a worker with a version gets work once its version is current', async () => {
  const world = await createWorld({ counts: { customers: 20, subscriptions: 0, plans: 1, retentions: 0 } })
  await startTestWorker(world, { CONNECTOR_BUILD_ID: '1.4.0' })
  const client = await connectTemporal()
  const { workflowService } = client
  const deployment = { namespace: 'default', deploymentName: world.taskQueue }
  await until(() =>
    workflowService.describeWorkerDeployment(deployment).then(
      ({ workerDeploymentInfo }) => (workerDeploymentInfo?.versionSummaries ?? []).length > 0,
      () => false,
    ),
  )
  const run = await startRun({ client, world, input: { resources: ['customers'] } })
  await workflowService.setWorkerDeploymentCurrentVersion({ ...deployment, buildId: '1.4.0' })
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
  const { raw } = await run.describe()
  const { versioningInfo } = raw.workflowExecutionInfo ?? {}
  expect(versioningInfo?.deploymentVersion).toMatchObject({ buildId: '1.4.0' })
  // VERSIONING_BEHAVIOR_AUTO_UPGRADE
  expect(versioningInfo?.behavior).toBe(2)
})
