import type { Client } from '@temporalio/client'
import { listNames } from '../../core/billing/resources/lists.ts'
import type { ExportInput, FetchInput, PublishAgainInput } from '../../core/exports/input.ts'
import type { exportData } from '../../workflows/export-run.ts'
import { hashInput } from '../input-hash.ts'
import type { Session } from '../session/session.ts'
import { attach, attachDated, type Attached } from './attach.ts'
import { type Call, type Following, runToEnd } from './run-to-end.ts'

interface Place {
  client: Client
  taskQueue: string
  /** Commands that share it agree on a run's id before one of them starts it. */
  dataDir: string
}

/** Starts an export, or resumes the unfinished one of the same input, and follows it to its end. */
export const runExport = ({ input, ...call }: Call & { input: ExportInput }): Promise<void> =>
  runRead({ ...call, input }, (place, identity) => startExport({ ...place, input: { ...input, identity } }))

/** Starts a fetch of documents, or resumes the unfinished one of the same input, and follows it to its end. */
export const runFetch = ({ input, ...call }: Call & { input: FetchInput }): Promise<void> =>
  runRead({ ...call, input }, (place, identity) => startFetch({ ...place, input: { ...input, identity } }))

async function runRead(
  { input, ...call }: Call & { input: ExportInput | FetchInput },
  start: (place: Place, identity: Session['identity']) => Promise<Attached<typeof exportData>>,
): Promise<void> {
  const { settings } = call
  const { workspace, testMode } = settings.billing
  await runToEnd<typeof exportData>({
    ...call,
    key: hashInput({ workspace, testMode, input: inOrder(input) }),
    start: ({ client, identity }) => start({ client, ...settings }, identity),
    follow: followAndReport,
    stopNote: 'nothing more is read or published',
  })
}

export function startExport({ input, ...place }: Place & { input: ExportInput }) {
  const { resources = [...listNames], to = ['csv'] } = input
  const names = resources.length === listNames.length ? 'all' : resources.toSorted().join('-')
  const summary = `${(input.resources ?? ['all resources']).join(', ')} to ${to.join(', ')}`
  const name = `export-${names}`
  return attachDated<typeof exportData>({
    ...place,
    workflow: 'exportData',
    input,
    key: inOrder(input),
    name,
    summary,
  })
}

function startFetch({ input, ...place }: Place & { input: FetchInput }) {
  const { documents, to = ['csv'] } = input
  return attachDated<typeof exportData>({
    ...place,
    workflow: 'fetchDocuments',
    input,
    key: inOrder(input),
    name: `fetch-${documents}`,
    summary: `${documents} to ${to.join(', ')}`,
  })
}

/** Publishes an export again, or attaches to the active run with the same input, and follows it to its end. */
export async function runPublish({ input, ...call }: Call & { input: PublishAgainInput }): Promise<void> {
  const { run, to } = input
  const workflowId = toPublishId(input)
  const summary = `${run} again${to === undefined ? '' : ` to ${to.join(', ')}`}`
  const { taskQueue } = call.settings
  // A publication is atomic, so a stop would keep nothing: Ctrl-C only detaches.
  await runToEnd<typeof exportData>({
    ...call,
    needsService: false,
    key: workflowId,
    start: ({ client }) => attach({ client, taskQueue, workflow: 'publishRun', workflowId, input, summary }),
    follow: followAndReport,
  })
}

async function followAndReport(following: Following<typeof exportData>): Promise<void> {
  const { session, handle, terminal, local } = following
  // Loaded late: with --detach, nothing follows.
  const { followExport } = await import('./follow.ts')
  const { reportExport } = await import('./report-export.ts')
  await reportExport({ report: await followExport({ ...session, handle, terminal }), terminal, local })
}

/** Sorts lists and destinations, whose order does not matter. */
const inOrder = ({ to, ...input }: ExportInput | FetchInput) => ({
  ...input,
  ...(to !== undefined && { to: to.toSorted() }),
  ...('resources' in input && input.resources !== undefined && { resources: input.resources.toSorted() }),
})

/**
 * The workflow id, for example `publish-export-all-20261121-094205-to-duckdb-parquet`; the order of the input does
 * not matter.
 */
function toPublishId({ run, to, maxDeletes, schema }: PublishAgainInput): string {
  const where = to === undefined ? '' : `-to-${to.toSorted().join('-')}`
  const deletes = maxDeletes === undefined ? '' : `-max-deletes-${maxDeletes}`
  return `publish-${run}${where}${deletes}${schema === undefined ? '' : `-schema-${schema}`}`
}
