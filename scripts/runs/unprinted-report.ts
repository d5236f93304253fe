import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../core/storage/durable.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import { readNote } from '../../core/runs/run-files.ts'

/** In ms. After a run that ended earlier than this, the same command starts a new run. */
const recentMs = 3_600_000

/**
 * Records durably that a command follows a run and has not printed its report. If the command is killed and started
 * again, it prints that report and exits with its code instead of starting a second run.
 */
export function unprintedReport({ dataDir, key }: { dataDir: string; key: string }) {
  const path = join(dataDir, 'unprinted', `${toFileName(key)}.json`)
  return {
    /**
     * The workflow id of the run whose report was not printed; undefined if there is none or the run did not
     * complete.
     */
    async find(client: Client): Promise<string | undefined> {
      const workflowId = await readNote<string>(path)
      if (workflowId === undefined) return undefined
      try {
        const { status, closeTime } = await client.workflow.getHandle(workflowId).describe()
        const isRecent = closeTime !== undefined && Date.now() - closeTime.getTime() < recentMs
        return status.name === 'COMPLETED' && isRecent ? workflowId : undefined
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return undefined
        throw error
      }
    },
    follows: (workflowId: string) => replaceFile(path, JSON.stringify(workflowId)),
    /** Call it after the report has been printed. */
    printed: () => rm(path, { force: true }),
  }
}

export const unprintedNote = (run: string): string =>
  `The run ${run} has ended and its report was not printed yet. Run the same command once more to start the next run.`
