import type { WorkerOptions } from '@temporalio/worker'
import type { Settings } from './settings/settings.ts'

/** Open runs move to the current version at their next step, as they do without versions. */
export const toDeployment = ({
  buildId,
  taskQueue,
}: Pick<Settings, 'buildId' | 'taskQueue'>): Pick<WorkerOptions, 'workerDeploymentOptions'> =>
  buildId === undefined
    ? {}
    : {
        workerDeploymentOptions: {
          version: { deploymentName: taskQueue, buildId },
          useWorkerVersioning: true,
          defaultVersioningBehavior: 'AUTO_UPGRADE',
        },
      }
