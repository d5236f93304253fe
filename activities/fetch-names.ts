import { isSmall, type RunRoom, type StepFolder } from '../core/runs/step-folder.ts'
import { changeRunFiles } from '../core/runs/run-files.ts'
import { runOfUse } from '../core/runs/name.ts'

/**
 * Fetches what is needed to name the next run of a workflow id: of its recoveries the plan, and of its imports, which may
 * resume, the notes. Of the other job's runs under the same id, it is enough to know that they exist.
 */
export async function fetchNames(options: {
  folder: StepFolder
  room: RunRoom
  workflowId: string
}): Promise<void> {
  const { folder, room, workflowId } = options
  const other = room === 'imports' ? 'recoveries' : 'imports'
  for (let use = 1; ; use += 1) {
    const run = runOfUse(workflowId, use)
    const isOwn = await folder.fetchRun({ room, run, only: room === 'imports' ? isSmall : isPlan })
    const isOther = await folder.fetchRun({ room: other, run, only: isPlan })
    if (!isOwn && !isOther) return
  }
}

const isPlan = (name: string) => name === changeRunFiles.plan
