import { NotInDoubtError, NotParkedError, WrongIdError } from '../changes/errors.ts'
import { InvalidInput } from '../runs/errors.ts'
import { outwardMessage } from '../runs/outward-message.ts'

/** A message with the values of a file, and the same without them. */
interface Message {
  message: string
  withoutValues: string
}

class Quote {
  readonly text: string
  readonly instead: string
  constructor(text: string, instead: string) {
    this.text = text
    this.instead = instead
  }
}

/** A cell or a text of a mapping in a message, and what Temporal, notifications and logs get instead of it. */
export const quote = (text: string, instead = '…') => new Quote(text, instead)

/** A message whose values are marked with `quote`. */
export function say(texts: TemplateStringsArray, ...parts: (string | number | Quote)[]): Message {
  const fill = (toText: (quoted: Quote) => string) =>
    String.raw({ raw: texts }, ...parts.map((part) => (part instanceof Quote ? toText(part) : part))).trim()
  return { message: fill(({ text }) => text), withoutValues: fill(({ instead }) => instead) }
}

class OutwardError extends Error {
  readonly withoutValues: string
  /** A plain text has no values. */
  constructor(message: string | Message, options?: ErrorOptions) {
    super(typeof message === 'string' ? message : message.message, options)
    this.withoutValues = typeof message === 'string' ? message : message.withoutValues
  }
}

/** The file's bytes are not a table. Nothing was sent. */
export class UnreadableFileError extends OutwardError {
  override readonly name = 'UnreadableFileError'
}

/** The options for the columns of a file (a mapping, a lookup, a locale) cannot be used. */
export class MappingError extends OutwardError {
  override readonly name = 'MappingError'
}

/** The file has problems. Nothing was sent. */
export class InvalidFileError extends OutwardError {
  override readonly name = 'InvalidFileError'
}

/** The file has problems, as reported by a run. Nothing was sent. */
export class InvalidFile extends Error {
  override readonly name = 'InvalidFile'
  readonly retryable = false
}

/** Another run did rows of the file, or the service already has them. Nothing was sent. */
export class RowsTaken extends Error {
  override readonly name = 'RowsTaken'
  readonly retryable = false
}

/** This worker was started for another command, so the run waits for a worker that may send it. */
export class ReservedWorker extends Error {
  override readonly name = 'ReservedWorker'
  constructor({ run }: { run: string }) {
    super(
      `The run ${run} is waiting: this worker belongs to another command. To resume it, run its own command again, or \`connector up\`.`,
    )
  }
}

const isRefusal = (error: unknown): error is Error =>
  [MappingError, NotInDoubtError, NotParkedError, WrongIdError].some((refusal) => error instanceof refusal)

/** Converts an error about a file or its mapping into a non-retryable one whose message has no values. */
export function toNonRetryable(error: unknown): unknown {
  if (error instanceof InvalidFileError || error instanceof UnreadableFileError)
    return new InvalidFile(outwardMessage(error), { cause: error })
  if (isRefusal(error)) return new InvalidInput(outwardMessage(error), { cause: error })
  return error
}
