/** What a command's end says to the program that called it. */
export const exitCodes = {
  /** All went well and is proven. */
  proven: 0,
  failed: 1,
  /** Wrong usage, or refused before anything was done. */
  refused: 2,
  /** Finished, but unproven, or with rows rejected, parked or not tried, or with ids that do not exist. */
  unproven: 3,
} as const

/** The command was called in a way that it does not know. */
export class UsageError extends Error {
  override name = 'UsageError' as const
  readonly exitCode = exitCodes.refused
}

/** The command was understood and is not carried out; nothing was changed. */
export class RefusedError extends Error {
  override name = 'RefusedError' as const
  readonly exitCode = exitCodes.refused
  /** What to do instead. */
  readonly hint: string | undefined

  constructor(message: string, options: ErrorOptions & { hint?: string } = {}) {
    super(message, options)
    this.hint = options.hint
  }
}

/**
 * The names of other rooms' errors that mean: refused, and nothing was done. By name, because most of them come out
 * of a run, and Temporal passes on no more than that.
 */
const refusals = new Set([
  'InvalidInput',
  'FilterError',
  'UnknownFieldError',
  'PrivacyRefusedError',
  'InvalidFile',
  'UnreadableFileError',
  'RowsTaken',
  'MappingError',
  'FolderOutsideError',
  'WrongWorker',
  'Busy',
  'FolderLockedError',
  // The settings don't lead into a warehouse: no such file, database, user or right.
  'WarehouseRefusedError',
  // The service's own no to the settings: a token or a workspace that is not the right one.
  'Unauthorized',
  'Forbidden',
])

/** An error as it is told: to people in one line, with `--json` as a document. */
export interface Failure {
  name: string
  /** One line: what, where, what to do. */
  message: string
  hint: string | null
  exitCode: number
}

/**
 * Any error as one line. Errors of ours say themselves what they mean, by `exitCode` and `hint`, or by their name
 * (else 1). Temporal's wrappers around a failure ("Workflow execution failed") say nothing; what they wrap does.
 */
export function toFailure(thrown: unknown): Failure {
  const error = unwrapped(thrown)
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

const wrappers = new Set(['WorkflowFailedError', 'ActivityFailure', 'ChildWorkflowFailure'])

function unwrapped(thrown: unknown): Error {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  return wrappers.has(error.name) && error.cause instanceof Error ? unwrapped(error.cause) : error
}

function messageOf(error: Error): string {
  if (error.message !== '') return error.message
  // Connecting to a name with several addresses fails with one error for each and no word of its own.
  if (error instanceof AggregateError) return error.errors.map((one) => messageOf(unwrapped(one))).join('; ')
  return error.name
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim()
}
