import { proxyActivities } from '@temporalio/workflow'

/** What Temporal keeps of a call. */
export type Answer = { result: unknown } | { refused: string }

/** What somebody with access to Temporal alone can do: a workflow of their own calls any step with any input. */
export async function callStep(call: {
  taskQueue: string
  step: string
  inputs: unknown[]
}): Promise<Answer[]> {
  const { taskQueue, step, inputs } = call
  const steps = proxyActivities<Record<string, (input: unknown) => Promise<unknown>>>({
    taskQueue,
    startToCloseTimeout: '10s',
    retry: { maximumAttempts: 1 },
  })
  return await Promise.all(
    inputs.map((input) =>
      steps[step]!(input).then(
        (result) => ({ result }),
        (error: unknown) => ({ refused: messagesOf(error).join('; ') }),
      ),
    ),
  )
}

const messagesOf = (error: unknown): string[] =>
  error instanceof Error ? [error.message, ...messagesOf(error.cause)] : []
