import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { changeRunFiles } from './run-files.ts'
import { toFileName } from '../storage/file-name.ts'

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
  execution: Execution
  /** Names of folders that must not be reused. */
  taken: ReadonlySet<string>
}): Promise<string> {
  const { dataDir, execution, taken } = options
  const id = execution.workflowId
  for (let use = 1; ; use += 1) {
    const name = use === 1 ? id : `${id}.${use}`
    const folder = toFileName(name)
    if (taken.has(folder)) continue
    if (await isOwnedBy({ folder: join(dataDir, 'parts', folder), execution })) return name
  }
}

/** Whether a run is an execution under a workflow id. */
export const isOfWorkflow = (run: string, workflowId: string): boolean =>
  run === workflowId || (run.startsWith(`${workflowId}.`) && /^\d+$/.test(run.slice(workflowId.length + 1)))

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
    const run = use === 1 ? workflowId : `${workflowId}.${use}`
    const taken = join(dataDir, other, toFileName(run), changeRunFiles.plan)
    if (!existsSync(taken)) yield { run, folder: join(room, toFileName(run)) }
  }
}

async function isOwnedBy({ folder, execution }: { folder: string; execution: Execution }): Promise<boolean> {
  const note = join(folder, 'run.json')
  await mkdir(folder, { recursive: true })
  const mine = JSON.stringify(execution)
  try {
    await writeFile(note, mine, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  // A file that a full disk truncated matches no execution.
  return (await readFile(note, 'utf8')) === mine
}

/**
 * The execution that a folder of parts belongs to; undefined if a full disk truncated the file that names
 * it.
 */
export async function executionOf(folder: string): Promise<Execution | undefined> {
  return readFile(join(folder, 'run.json'), 'utf8')
    .then((text) => JSON.parse(text) as Execution)
    .catch(() => undefined)
}
