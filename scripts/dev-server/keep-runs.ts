import { Connection } from '@temporalio/client'
import { localChannel } from './readiness.ts'
import type { DevServer } from './start-dev-server.ts'

/** A dev server's own default is one day, after which last week's runs would be gone. */
const keptDays = 30

/**
 * Makes the server keep runs for 30 days after their end, including runs that ended before. For a shared server, the
 * command that started it has done this. A failure is no reason to give up the server.
 */
export async function keepRuns({ address, origin }: Pick<DevServer, 'address' | 'origin'>): Promise<void> {
  if (origin !== 'shared') await setRetention(address).catch(() => undefined)
}

async function setRetention(address: string): Promise<void> {
  const connection = await Connection.connect({ address, ...localChannel })
  try {
    // The type requires a long, but a number is accepted.
    const seconds = (keptDays * 86_400) as unknown as NonNullable<DurationSeconds>
    await connection.workflowService.updateNamespace({
      namespace: 'default',
      config: { workflowExecutionRetentionTtl: { seconds } },
    })
  } finally {
    await connection.close()
  }
}

type UpdateNamespace = Parameters<Connection['workflowService']['updateNamespace']>[0]
type DurationSeconds = NonNullable<
  NonNullable<NonNullable<UpdateNamespace['config']>['workflowExecutionRetentionTtl']>['seconds']
>
