import { Client, isGrpcServiceError, type WorkflowExecutionInfo } from '@temporalio/client'
import type { Command } from 'commander'
import { z } from 'zod'
import { formatDuration, formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { isRunType, runTypeQuery, runTypes } from '../runs/find-run.ts'
import { openClient } from '../session/session.ts'
import { addExamples, addInputOptions, processSettings, toAge } from './options.ts'
import { blankingCodec } from '../../worker/codec/payload-codec.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

const mostRuns = 50
// The number of a gRPC status code (https://grpc.io/docs/guides/status-codes).
const invalidArgument = 3

const verdicts = ['proven', 'unproven', 'stopped', 'failed', 'dryRun'] as const

const listInput = z.object({
  open: z.boolean().optional().meta({ flag: '--open', help: 'only runs in progress' }),
  verdict: z
    .enum(verdicts)
    .optional()
    .meta({ flag: '--verdict <verdict>', help: 'only runs with this verdict' }),
  needsPerson: z.boolean().optional().meta({ flag: '--needs-person', help: 'only runs that need a person' }),
  since: z
    .string()
    .refine((text) => toTime(text) !== undefined, 'write 12h, 7d or 2026-11-21')
    .optional()
    .meta({ flag: '--since <time>', help: 'only runs started since then, as in 12h, 7d or 2026-11-21' }),
})
type Options = z.output<typeof listInput>

export function configure(command: Command, terminal: Terminal): void {
  addInputOptions(command, listInput).action(async (options: Options) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const { connection, options: own } = client
    const dataConverter = { payloadCodecs: [blankingCodec] }
    const { workflow } = new Client({ connection, namespace: own.namespace, dataConverter })
    const runs = []
    const query = toQuery(options, settings.taskQueue)
    for await (const listed of refuseUnknown(workflow.list({ query }))) {
      const run = toRun(listed)
      const isDoneSince = async () => (await workflow.count(laterQuery(run))).count > 0
      const needsPerson = run.needsPerson && !(run.closeTime !== undefined && (await isDoneSince()))
      if (options.needsPerson && !needsPerson) continue
      runs.push({ ...run, needsPerson })
      if (runs.length === mostRuns) break
    }
    const rows = runs.map(({ run, kind, status, verdict, needsPerson, startTime, closeTime }) => [
      run,
      kind,
      verdict === 'dryRun' ? 'dry run' : (verdict ?? status),
      needsPerson ? 'needs a person' : '',
      formatLocalTime(startTime),
      formatDuration((closeTime ?? new Date()).getTime() - startTime.getTime()),
    ])
    const head = ['run', 'kind', 'verdict', '', 'started', 'took']
    terminal.result({
      document: { runs },
      text: rows.length === 0 ? 'No runs.' : formatTable({ head, rows }),
    })
  })
  addExamples(command, 'inspect', {
    'run list --open': 'runs in progress',
    'run list --needs-person --since 7d': 'what needs a person, this week',
    'run list --verdict unproven': 'runs that ended unproven',
  })
}

function toRun(listed: WorkflowExecutionInfo) {
  const { workflowId, runId, type, status, startTime, closeTime } = listed
  const attributes = listed.typedSearchAttributes.getAll()
  const found = new Map<string, unknown>(attributes.map(({ key, value }) => [key.name, value]))
  const verdict = found.get('Verdict')
  const schedule = found.get('TemporalScheduledById')
  return {
    run: workflowId,
    runId,
    kind: isRunType(type) ? runTypes[type] : type,
    type,
    status: status.name.toLowerCase(),
    /** Null while the run is active, and on a server without our search attributes. */
    verdict: typeof verdict === 'string' ? verdict : null,
    needsPerson: found.get('NeedsPerson') === true,
    startTime,
    closeTime,
    schedule: typeof schedule === 'string' ? schedule : undefined,
  }
}

/**
 * Finds the later runs of the same command or schedule that need nobody: Temporal cannot change the search attributes of
 * a run that has ended. A later run of an import continues with its rows, whatever becomes of them.
 */
function laterQuery({ run, runId, type, startTime, schedule }: ReturnType<typeof toRun>): string {
  const same = `WorkflowId = '${run}'`
  const later = [
    `WorkflowType = '${type}'`,
    `RunId != '${runId}'`,
    `StartTime >= '${startTime.toISOString()}'`,
  ]
  if (type === 'importFile') return [same, ...later, 'Verdict IS NOT NULL'].join(' AND ')
  return [
    schedule === undefined ? same : `(${same} OR TemporalScheduledById = '${schedule}')`,
    ...later,
    "Verdict = 'proven'",
    // A proven recovery reports again what still needs a person.
    ...(type === 'recoverSubscriptions' ? [] : ['NeedsPerson = false']),
  ].join(' AND ')
}

function toQuery({ open, verdict, needsPerson, since }: Options, taskQueue: string): string {
  return [
    runTypeQuery,
    `TaskQueue = '${taskQueue}'`,
    ...(open ? ["ExecutionStatus = 'Running'"] : []),
    ...(verdict === undefined ? [] : [`Verdict = '${verdict}'`]),
    ...(needsPerson ? ['NeedsPerson = true'] : []),
    ...(since === undefined ? [] : [`StartTime >= '${toTime(since)?.toISOString()}'`]),
  ].join(' AND ')
}

/** @throws {RefusedError} if the server does not have the search attributes */
async function* refuseUnknown<T>(runs: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* runs
  } catch (error) {
    // The SDK wraps it.
    const refusal: unknown = (error as Error).cause ?? error
    if (!isGrpcServiceError(refusal) || (refusal.code as number) !== invalidArgument) throw error
    throw new RefusedError('This Temporal server has no search attributes Verdict and NeedsPerson.', {
      cause: error,
      hint: 'Create them as docs/deployment.md describes, or drop --verdict and --needs-person.',
    })
  }
}

/** Undefined if the text is not a time. A bare 30 may be meant as days. */
function toTime(text: string): Date | undefined {
  const ago = toAge(text)
  const at = ago === undefined ? new Date(text) : new Date(Date.now() - ago)
  return Number.isNaN(at.getTime()) || /^\d+(\.\d+)?$/.test(text) ? undefined : at
}
