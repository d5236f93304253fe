import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'

export interface Execution {
  workflowId: string
  runId: string
}

/**
 * Names a run after its workflow id. In the Temporal UI people type ids and may reuse one: a second
 * execution under the same id is called `<id>.2`. The same execution always gets the same name.
 */
export async function nameRun(options: {
  dataDir: string
  shared: SharedFolder
  execution: Execution
  /** Names of folders that must not be reused. */
  taken: ReadonlySet<string>
}): Promise<string> {
  const { dataDir, shared, execution, taken } = options
  const id = execution.workflowId
  for (let use = 1; ; use += 1) {
    const name = runOfUse(id, use)
    const folder = toFileName(name)
    if (taken.has(folder)) continue
    // A file that a full disk truncated matches no execution.
    if (await shared.create(join(dataDir, 'parts', folder, 'run.json'), JSON.stringify(execution)))
      return name
  }
}

/** The name of the first, second ... run under a workflow id. */
export const runOfUse = (workflowId: string, use: number): string =>
  use === 1 ? workflowId : `${workflowId}.${use}`

/** The search attributes by which runs are found in the Temporal UI. */
export type SearchAttributeName = 'Verdict' | 'NeedsPerson' | 'Resource'
