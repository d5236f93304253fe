import { Connection } from '@temporalio/client'
import { localChannel } from './readiness.ts'

/** A dev server's own default is a day: what became of last week's runs could not be seen any more. */
const keptDays = 30

/** Has the server at the address keep runs for 30 days after their end, those that it holds included. */
export async function keepRuns({ address }: { address: string }): Promise<void> {
  const connection = await Connection.connect({ address, ...localChannel })
  try {
    // Seconds are a long there, and a number is taken for one.
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
