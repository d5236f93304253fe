import { listNames } from '../../core/billing/resources/lists.ts'
import type { ExportInput, FetchInput, PublishAgainInput } from '../../core/exports/input.ts'
import type { exportData } from '../../workflows/export-run.ts'
import type { Session } from '../session/session.ts'
import { attach, type Attached, nameRun } from './attach.ts'
import { type Call, type Following, runToEnd } from './run-to-end.ts'

/** Starts an export, or resumes the unfinished one of the same input, and follows it to its end. */
export const runExport = ({ input, ...call }: Call & { input: ExportInput }): Promise<void> =>
  runRead({ ...call, start: (session) => startExport({ ...call, session, input }) })

/** Starts a fetch of documents, or resumes the unfinished one of the same input, and follows it to its end. */
export const runFetch = ({ input, ...call }: Call & { input: FetchInput }): Promise<void> =>
  runRead({ ...call, start: (session) => startFetch({ ...call, session, input }) })

interface Start<Input> extends Pick<Call, 'settings'> {
  session: Pick<Session, 'client' | 'identity'>
  input: Input
}

export function startExport({ settings, session, input }: Start<ExportInput>) {
  const { resources, to = ['csv'] } = input
  const names = new Set(resources ?? listNames)
  const subject = names.size === listNames.length ? 'all' : [...names].toSorted().join('-')
  return attach<typeof exportData>({
    ...session,
    taskQueue: settings.taskQueue,
    workflow: 'exportData',
    workflowId: nameRun({ what: `export-${subject}`, settings, input: inOrder(input) }),
    input: { ...input, identity: session.identity },
    summary: `${(resources ?? ['all resources']).join(', ')} to ${to.join(', ')}`,
  })
}

function startFetch({ settings, session, input }: Start<FetchInput>) {
  const { documents, to = ['csv'] } = input
  return attach<typeof exportData>({
    ...session,
    taskQueue: settings.taskQueue,
    workflow: 'fetchDocuments',
    workflowId: nameRun({ what: `fetch-${documents}`, settings, input: inOrder(input) }),
    input: { ...input, identity: session.identity },
    summary: `${documents} to ${to.join(', ')}`,
  })
}

const runRead = (
  call: Call & { start: (session: Session) => Promise<Attached<typeof exportData>> },
): Promise<void> =>
  runToEnd({ ...call, follow: followAndReport, stopNote: 'nothing more is read or published' })

/** Publishes an export again, or attaches to the active run with the same input, and follows it to its end. */
export async function runPublish({ input, ...call }: Call & { input: PublishAgainInput }): Promise<void> {
  const { run, to } = input
  const workflowId = namePublication(input)
  const summary = `${run} again${to === undefined ? '' : ` to ${to.join(', ')}`}`
  const { taskQueue } = call.settings
  // A publication is atomic, so a stop would keep nothing: Ctrl-C only detaches.
  await runToEnd<typeof exportData>({
    ...call,
    needsService: false,
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

/** As readable as the run that it publishes: `publish-export-all-1f0c2b7a90-to-duckdb-parquet`. */
function namePublication({ run, to, maxDeletes, schema }: PublishAgainInput): string {
  const where = to === undefined ? '' : `-to-${to.toSorted().join('-')}`
  const deletes = maxDeletes === undefined ? '' : `-max-deletes-${maxDeletes}`
  return `publish-${run}${where}${deletes}${schema === undefined ? '' : `-schema-${schema}`}`
}
