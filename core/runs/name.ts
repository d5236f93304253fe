import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { changeRunFiles } from './run-files.ts'
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

/** The folders of write runs. The ledger identifies a run by its name alone. */
type ChangeRoom = 'imports' | 'recoveries'

/**
 * The names that a write run may have: its workflow id, `<id>.2`, `<id>.3` and so on, except those of runs
 * of the other job, which may have used the same id.
 */
export async function* namesIn(options: {
  dataDir: string
  room: ChangeRoom
  workflowId: string
}): AsyncGenerator<{ run: string; folder: string }> {
  const { dataDir, room, workflowId } = options
  const other: ChangeRoom = room === 'imports' ? 'recoveries' : 'imports'
  for (let use = 1; ; use += 1) {
    const run = runOfUse(workflowId, use)
    const taken = join(dataDir, other, toFileName(run), changeRunFiles.plan)
    if (!existsSync(taken)) yield { run, folder: join(room, toFileName(run)) }
  }
}
