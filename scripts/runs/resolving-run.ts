import { type WorkflowHandle, WorkflowFailedError } from '@temporalio/client'

/** Marks a run that `resolve` has started: it sends only what is resolved. */
export const onlyResolvedMemo = 'onlyResolved'

/** Whether the run under this handle only resolves rows. */
export async function isResolving(handle: Pick<WorkflowHandle, 'describe'>): Promise<boolean> {
  const { memo } = await handle.describe()
  return memo?.[onlyResolvedMemo] === true
}

/** Waits until a run has ended, even by a failure. */
export async function awaitAnyEnd(handle: Pick<WorkflowHandle, 'result'>): Promise<void> {
  try {
    await handle.result()
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error
  }
}
