import type { Client } from '@temporalio/client'
import type { PublishAgainInput } from '../../core/exports/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { publishRun } from '../../workflows/publish-run.ts'
import { runToReport } from './follow-to-end.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Publishes an export again, or goes on with an unfinished run that does just that, and tells how it ends. */
export async function runPublish(options: {
  settings: Settings
  terminal: Terminal
  input: PublishAgainInput
  local: boolean
  detach: boolean
}): Promise<void> {
  const { settings, terminal, input, local, detach } = options
  await runToReport({
    settings,
    terminal,
    local,
    detach,
    needsService: false,
    key: toPublishId(input),
    async start({ client }) {
      const handle = await startPublish({ client, taskQueue: settings.taskQueue, input })
      terminal.note(`Run ${handle.workflowId}`)
      return handle
    },
    // A publication is seen whole or not at all: there is nothing to be kept of one that is stopped.
    onInterrupt: ({ letGo }) => onInterrupt({ first: letGo, second: letGo }),
  })
}

function startPublish(options: { client: Client; taskQueue: string; input: PublishAgainInput }) {
  const { client, taskQueue, input } = options
  return client.workflow.start<typeof publishRun>('publishRun', {
    workflowId: toPublishId(input),
    taskQueue,
    args: [input],
    // The id says all that the input does: a run that is under way under it does what is asked for.
    workflowIdConflictPolicy: 'USE_EXISTING',
    staticSummary: `${input.run} again${input.to === undefined ? '' : ` to ${input.to.join(', ')}`}`,
  })
}

/** `publish-export-all-20261121-094205-to-duckdb-parquet`: of which run, and where to, in whatever order that was said. */
function toPublishId({ run, to, maxDeletes, schema }: PublishAgainInput): string {
  const where = to === undefined ? '' : `-to-${to.toSorted().join('-')}`
  const deletes = maxDeletes === undefined ? '' : `-max-deletes-${maxDeletes}`
  return `publish-${run}${where}${deletes}${schema === undefined ? '' : `-schema-${schema}`}`
}
