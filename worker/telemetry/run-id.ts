import { Context } from '@temporalio/activity'

/** The run as people know it: an export reads each list in a child, `<run>/<resource>`. */
export function runOf({ workflowId, workflowType }: { workflowId: string; workflowType: unknown }): string {
  return workflowType === 'exportResource' ? workflowId.replace(/\/[^/]*$/, '') : workflowId
}

/** The run whose activity is at work here; undefined where none is. */
export function currentRun(): string | undefined {
  try {
    const { workflowExecution, workflowType } = Context.current().info
    return workflowExecution && runOf({ ...workflowExecution, workflowType })
  } catch {
    return undefined
  }
}
