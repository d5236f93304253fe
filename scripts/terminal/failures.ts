import { FileRefusal } from '../../core/imports/errors.ts'

/** The exit code of a command. */
export const exitCodes = {
  /** Done and proven. */
  proven: 0,
  failed: 1,
  /** Wrong usage, or refused before anything was done. */
  refused: 2,
  /** Finished, but unproven or stopped, or with rejected, parked, untried or missing rows. */
  unproven: 3,
} as const

/** Wrong usage of a command. */
export class UsageError extends Error {
  override name = 'UsageError' as const
  readonly exitCode = exitCodes.refused
}

/** A valid command was refused; nothing was changed. */
export class RefusedError extends Error {
  override name = 'RefusedError' as const
  readonly exitCode = exitCodes.refused
  /** What to do instead. */
  readonly hint: string | undefined
  /** For programs (`--json`): what else is known. */
  readonly details: object | undefined

  constructor(message: string, options: ErrorOptions & { hint?: string; details?: object } = {}) {
    super(message, options)
    this.hint = options.hint
    this.details = options.details
  }
}

/** Why a file cannot be opened, and what to do. */
const unreadable: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist. Check the path.',
  EACCES: 'may not be read by this user. Check its permissions.',
  EISDIR: 'is a folder. Name the file in it.',
}

/** @throws {RefusedError} for a file of the user that cannot be opened or used; any other error as it is */
export function refuseFile(error: unknown): never {
  const { code, path } = error as NodeJS.ErrnoException
  const problem = unreadable[code ?? '']
  if (problem !== undefined) throw new RefusedError(`${path} ${problem}`, { cause: error })
  throw error instanceof FileRefusal ? new RefusedError(error.message, { cause: error }) : error
}

/**
 * Names of errors that mean "refused, nothing was done". Names instead of classes, because most errors come from a
 * run, and Temporal passes on only the name.
 */
const refusals = new Set([
  'InvalidInput',
  'FilterError',
  'UnknownFieldError',
  'PrivacyRefusedError',
  'InvalidFile',
  'InvalidMapping',
  'RowsTaken',
  // A decision on a row that does not fit the row.
  'NotInDoubtError',
  'NotParkedError',
  'WrongIdError',
  'FolderOutsideError',
  'WrongWorker',
  'Busy',
  'FolderLockedError',
  // PostgreSQL refuses the user of CONNECTOR_STATE_URL.
  'StateRefusedError',
  'UnsafeServerError',
  // The state or its files are elsewhere, or in use.
  'StateMovedError',
  'StateNotMovedError',
  'NotMovedHereError',
  'StateInUseError',
  'OtherBucketError',
  'StateReplacedError',
  'WorkerThereError',
  'OtherStateError',
  // The warehouse in the settings is not accessible: no such file, database or user, or no permission.
  'WarehouseRefusedError',
  // The warehouse is another's, has values in another form, or has a later read. Thrown before anything is read.
  'NotAdmittedError',
  // The service refuses the token or the workspace.
  'Unauthorized',
  'Forbidden',
])

/** An error as printed: one line for people, a document with `--json`. */
export interface Failure {
  name: string
  /** One line: what failed, where, and what to do. */
  message: string
  hint: string | null
  exitCode: number
}

/**
 * Converts any error to one line. Our errors carry `exitCode` and `hint` or are known by name; all others exit with
 * 1. Temporal's wrappers ("Workflow execution failed") are replaced by the errors that they wrap.
 */
export function toFailure(thrown: unknown): Failure {
  const error = outageOf(unwrapped(thrown)) ?? unwrapped(thrown)
  const { exitCode, hint, type } = error as { exitCode?: unknown; hint?: unknown; type?: unknown }
  const name = error.name === 'ApplicationFailure' && typeof type === 'string' ? type : error.name
  const meant = refusals.has(name) ? exitCodes.refused : exitCodes.failed
  return {
    name,
    message: oneLine(messageOf(error)),
    hint: typeof hint === 'string' ? oneLine(hint) : null,
    exitCode: typeof exitCode === 'number' ? exitCode : meant,
  }
}

/** Temporal did not carry out a call, for a reason that is not the call's. */
class TemporalOutage extends Error {
  override readonly name = 'TemporalOutage'
  readonly hint =
    'Run the same command again in a moment. If that does not help, look at the Temporal server.'
  constructor(details: string, options: ErrorOptions) {
    super(`Temporal cannot do this now: ${details.replace(/\.$/, '')}.`, options)
  }
}

/** DEADLINE_EXCEEDED and UNAVAILABLE (https://grpc.io/docs/guides/status-codes). */
const outages: readonly unknown[] = [4, 14]

/** The outage that a gRPC error reports, alone or in the SDK's `ServiceError`; undefined for any other error. */
function outageOf(error: Error): TemporalOutage | undefined {
  if (error.name === 'ServiceError' && error.cause instanceof Error) return outageOf(error.cause)
  const { code, details } = error as { code?: unknown; details?: unknown }
  return typeof details === 'string' && outages.includes(code)
    ? new TemporalOutage(details, { cause: error })
    : undefined
}

const wrappers = new Set(['WorkflowFailedError', 'ActivityFailure', 'ChildWorkflowFailure'])

function unwrapped(thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  return wrappers.has(error.name) && error.cause instanceof Error ? unwrapped(error.cause) : error
}

function messageOf(error: Error): string {
  if (error.message !== '') return error.message
  // Connecting to a name with several addresses fails with one error per address and an empty message.
  if (error instanceof AggregateError) return error.errors.map((one) => messageOf(unwrapped(one))).join('; ')
  return error.name
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}
