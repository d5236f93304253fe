import type { WorkflowInterceptorsFactory } from '@temporalio/workflow'
import type { Opened } from '../../core/notifications/opened.ts'

/** Used where each heartbeat is billed and crosses a network that may be slow for a while. */
const remoteTimeout = '60s'

let isRemote = false

/** Sets how often the steps of this run heartbeat from now on, as its plan says. */
export function allowHeartbeats({ heartbeats }: Pick<Opened<unknown>, 'heartbeats'>): void {
  isRemote = heartbeats === 'remote'
}

export const interceptors: WorkflowInterceptorsFactory = () => ({
  outbound: [
    {
      scheduleActivity: (input, next) => {
        const { options } = input
        const isBeating = isRemote && options.heartbeatTimeout !== undefined
        return next(
          isBeating ? { ...input, options: { ...options, heartbeatTimeout: remoteTimeout } } : input,
        )
      },
    },
  ],
})
