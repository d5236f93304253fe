import { InvalidFileError, MappingError, UnreadableFileError } from './errors.ts'
import { NotParkedError } from '../changes/errors.ts'
import { InvalidInput } from '../runs/errors.ts'
import { outwardMessage } from '../runs/outward-message.ts'

/** The file has problems, and nothing of it was sent. */
export class InvalidFile extends Error {
  override readonly name = 'InvalidFile'
  readonly retryable = false
}

/** Rows of the file were done by another run, or the service has them; nothing was sent. */
export class RowsTaken extends Error {
  override readonly name = 'RowsTaken'
  readonly retryable = false
}

/** This worker was started for another command: the run waits for its own. */
export class NotWoken extends Error {
  override readonly name = 'NotWoken'
  constructor({ run }: { run: string }) {
    super(
      `The run ${run} waits: this worker belongs to another command. The same import command, or \`connector up\`, goes on with it.`,
    )
  }
}

/** Makes what is wrong with a file, or with its mapping, a refusal that is not retried; its message has no values. */
export function refusing(error: unknown): unknown {
  if (error instanceof InvalidFileError || error instanceof UnreadableFileError)
    return new InvalidFile(outwardMessage(error), { cause: error })
  if (error instanceof MappingError || error instanceof NotParkedError)
    return new InvalidInput(outwardMessage(error), { cause: error })
  return error
}
