import {
  type Client,
  type WorkflowHandle,
  WorkflowExecutionAlreadyStartedError,
  WorkflowNotFoundError,
} from '@temporalio/client'
import { createHash } from 'node:crypto'
import { listNames } from '../../core/billing/resources/lists.ts'
import type { ExportInput, FetchInput, PublishAgainInput } from '../../core/exports/input.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'
import type { Identity } from '../../core/runs/identity.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { LocalSessionOptions } from '../session/local-session.ts'
import { inSession, openSession, type Session } from '../session/session.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'
import { runTypes } from './find-run.ts'

/** A run as a command asks for it. The same command always asks for the same id. */
export interface RunRequest {
  workflow: keyof typeof runTypes
  workflowId: string
  /** Without the identity of the worker, which the run gets as it starts. */
  input: object
  /** Shown with the run in the Temporal UI. */
  summary: string
}

/** The context of a command that starts a run. */
export interface Call {
  settings: Settings
  terminal: Terminal
  local: boolean
  detach: boolean
}

type Named<Input> = Pick<Call, 'settings'> & { input: Input }

export function exportRequest({ settings, input }: Named<ExportInput>): RunRequest {
  const { resources, to = ['csv'] } = input
  const names = new Set(resources ?? listNames)
  const subject = names.size === listNames.length ? 'all' : [...names].toSorted().join('-')
  const workflowId = nameRun(`export-${subject}`, settings, inOrder(input))
  const summary = `${(resources ?? ['all resources']).join(', ')} to ${to.join(', ')}`
  return { workflow: 'exportData', workflowId, input, summary }
}

export function fetchRequest({ settings, input }: Named<FetchInput>): RunRequest {
  const { documents, to = ['csv'] } = input
  const workflowId = nameRun(`fetch-${documents}`, settings, inOrder(input))
  return { workflow: 'fetchDocuments', workflowId, input, summary: `${documents} to ${to.join(', ')}` }
}

export function recoveryRequest({ settings, input }: Named<RecoveryInput>): RunRequest {
  const summary = `resume ${input.reasons?.join(', ') ?? 'what a resume can fix'}`
  return { workflow: 'recoverSubscriptions', workflowId: nameRun('recover', settings, input), input, summary }
}

const stopRead = 'nothing more is read or published'

export const runExport = ({ input, ...call }: Call & { input: ExportInput }): Promise<void> =>
  runJob({ ...call, request: exportRequest({ ...call, input }), stopNote: stopRead })

export const runFetch = ({ input, ...call }: Call & { input: FetchInput }): Promise<void> =>
  runJob({ ...call, request: fetchRequest({ ...call, input }), stopNote: stopRead })

/** Publishes an export again. A publication is atomic, so a stop would keep nothing: Ctrl-C only detaches. */
export async function runPublish({ input, ...call }: Call & { input: PublishAgainInput }): Promise<void> {
  const { run, to } = input
  const summary = `${run} again${to === undefined ? '' : ` to ${to.join(', ')}`}`
  const request = { workflow: 'publishRun', workflowId: namePublication(input), input, summary } as const
  await runJob({ ...call, request, needsService: false })
}

/** Without a terminal, the run asks for no approval, like scheduled runs; with one it asks, unless --yes was given. */
export async function runRecovery(of: Call & { input: RecoveryInput; yes: boolean }): Promise<void> {
  const { input: typed, yes, ...call } = of
  const isThere = call.terminal.isInteractive && !call.detach
  const { approval: isWanted = false } = typed
  const input = { ...typed, approval: isWanted || (isThere && !yes), attended: isWanted || isThere }
  // The run is the same whether or not somebody is there and is asked.
  const request = { ...recoveryRequest({ ...call, input: typed }), input }
  const stopNote = 'nothing more is resumed; the results of the last ones are awaited'
  await runJob({ ...call, request, stopNote })
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

/** The workflow id of a command: what it does, and a hash of its input in this workspace and mode. */
function nameRun(what: string, settings: Pick<Settings, 'billing'>, input: object): string {
  const { workspace, testMode } = settings.billing
  return `${what}-${hashInput({ workspace, testMode, input }).slice(0, 10)}`
}

/** Hashes an input; the order of its fields does not matter. */
export const hashInput = (input: object): string =>
  createHash('sha256').update(toCanonical(input)).digest('hex').slice(0, 16)

function toCanonical(input: object): string {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  return JSON.stringify(input, (_, value: unknown) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value as object).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
}

export interface StartedRun {
  handle: WorkflowHandle
  /** Whether an unfinished run of the same command was found instead of starting one. */
  attached: boolean
}

/**
 * Starts a run, or attaches to the unfinished run of the same command: Temporal itself prevents two commands that start
 * together from becoming two runs. Once a run has ended, the next one under its id is called `<id>.2`.
 */
export async function startRun(of: {
  settings: Pick<Settings, 'taskQueue'>
  session: { client: Client; identity: Identity }
  request: RunRequest
}): Promise<StartedRun> {
  const { settings, session, request } = of
  const { workflow, workflowId, input, summary } = request
  const handle = session.client.workflow.getHandle(workflowId)
  // What is published again has the identity of its export.
  const whole = workflow === 'publishRun' ? input : { ...input, identity: session.identity }
  try {
    await session.client.workflow.start(workflow, {
      workflowId,
      taskQueue: settings.taskQueue,
      args: [whole],
      workflowIdConflictPolicy: 'FAIL',
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      staticSummary: summary,
    })
    return { handle, attached: false }
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return { handle, attached: true }
    throw error
  }
}

interface RunToEnd extends Call {
  request: Pick<RunRequest, 'workflow' | 'workflowId'>
  /** False if the run does not use the service, which may then be down. */
  needsService?: boolean
  /** Describes what Ctrl-C stops; absent if it only detaches. */
  stopNote?: string
  start: (session: Session) => Promise<StartedRun>
}

const runJob = (of: Omit<RunToEnd, 'start'> & { request: RunRequest }): Promise<void> =>
  runToEnd({ ...of, start: (session) => startRun({ ...of, session }) })

/**
 * Starts a run, or resumes the unfinished one of the same command, follows it to its end and prints its report.
 */
export async function runToEnd(options: RunToEnd): Promise<void> {
  const { settings, terminal, detach, needsService = true, request, start } = options
  const kind = runTypes[request.workflow]
  const mayWrite = (run: string) => run === request.workflowId && (kind === 'import' || kind === 'recovery')
  const sessionOptions = { settings, terminal, needsService, mayWrite }
  const session = options.local ? await openLocal(sessionOptions) : await openSession(sessionOptions)
  await inSession(session, async () => {
    const { identity } = session
    terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
    const { handle, attached } = await start(session)
    const run = handle.workflowId
    terminal.note(`${attached ? 'Resumes the unfinished run' : 'Run'} ${run}`)
    if (detach)
      return terminal.result({
        document: { run },
        text: `Follow it with: ${connector`run watch ${run}`}`,
      })
    using _interrupt = stopOnInterrupt({ ...options, session, handle })
    // Loaded late: with --detach, nothing follows.
    const { followRun } = await import('./follow.ts')
    await followRun({ kind, session, handle, terminal, settings, local: options.local })
  })
}

/** Loaded late: a command beside a worker starts neither server nor worker. */
async function openLocal(options: LocalSessionOptions): Promise<Session> {
  const { openLocalSession } = await import('../session/local-session.ts')
  return await openLocalSession(options)
}

/** Handles Ctrl-C: the first asks the run to stop cleanly, the second detaches from it. */
export function stopOnInterrupt(options: {
  session: Pick<Session, 'detach'>
  handle: Pick<WorkflowHandle, 'workflowId' | 'signal'>
  terminal: Terminal
  stopNote?: string
}): Disposable {
  const { session, handle, terminal, stopNote } = options
  const run = handle.workflowId
  const detach = async () => {
    const next = await session.detach()
    terminal.note(
      next === 'waits'
        ? `The run ${run} waits. Run the same command again to resume it.`
        : `The run ${run} continues. Follow it with: ${connector`run watch ${run}`}`,
    )
    process.exit(exitCodes.failed)
  }
  return onInterrupt({
    async first() {
      if (stopNote === undefined) {
        await detach()
        return
      }
      terminal.note(`Stopping: ${stopNote}. Press Ctrl-C again to detach.`)
      await handle.signal('stop').catch((error: unknown) => {
        // The run ended before the request arrived.
        if (!(error instanceof WorkflowNotFoundError)) throw error
      })
    },
    second: detach,
  })
}
