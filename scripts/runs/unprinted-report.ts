import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../core/storage/durable.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import { readNote } from '../../core/runs/run-files.ts'

/** A run that ended earlier than this is history: the same command starts the next one. */
const recentMs = 3_600_000

/**
 * Remembers, durably, that a command follows a run and has not printed its report. A command that is killed in between
 * and started again prints that report and ends with its code, and starts no second run.
 */
export function unprintedReport({ dataDir, key }: { dataDir: string; key: string }) {
  const path = join(dataDir, 'unprinted', `${toFileName(key)}.json`)
  return {
    /** The workflow id of the run whose report was not printed; undefined if there is none, or it failed. */
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
    /** To be called after the report went out. */
    printed: () => rm(path, { force: true }),
  }
}

export const unprintedNote = (run: string): string =>
  `The run ${run} has ended and its report was not printed yet. Run the same command once more to start the next run.`
