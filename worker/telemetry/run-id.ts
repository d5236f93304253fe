import { Context } from '@temporalio/activity'

/** The run id: an export reads each list in a child workflow, `<run>/<resource>`. */
export function runOf({ workflowId, workflowType }: { workflowId: string; workflowType: unknown }): string {
  return workflowType === 'exportResource' ? workflowId.replace(/\/[^/]*$/, '') : workflowId
}

/** The run of the current activity; undefined outside activities. */
export function currentRun(): string | undefined {
  try {
    const { workflowExecution, workflowType } = Context.current().info
    return workflowExecution && runOf({ ...workflowExecution, workflowType })
  } catch {
    return undefined
  }
}
