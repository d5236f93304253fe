import { ApplicationFailure, CancelledFailure } from '@temporalio/common'
import { isSystemError, refusalOf } from '../core/storage/system-errors.ts'
import { toStateError } from '../core/state/errors.ts'
import { UnwritableFolder } from '../core/runs/errors.ts'
import { outwardMessage } from '../core/runs/outward-message.ts'

/**
 * What a step's error means to Temporal: an error whose class says `retryable: false` ends the run with its own
 * sentence, and so does a disk that takes no writes, because waiting for hours mends neither; every other is tried
 * again. Nothing but the name and the outward message leaves the worker: no rows, no words of the service, no token.
 */
export function toFailure(thrown: unknown, { dataDir }: { dataDir: string }): Error {
  if (thrown instanceof ApplicationFailure || thrown instanceof CancelledFailure) return thrown
  const error = inOurWords(thrown, dataDir)
  if (!(error instanceof Error))
    return ApplicationFailure.create({ message: String(error), type: 'Unexpected' })
  const nonRetryable = 'retryable' in error && error.retryable === false
  return ApplicationFailure.create({ message: outwardMessage(error), type: error.name, nonRetryable })
}

function inOurWords(error: unknown, dataDir: string): unknown {
  if (!isSystemError(error)) return toStateError({ file: dataDir, cause: error })
  const why = refusalOf(error)
  return why === undefined ? error : new UnwritableFolder({ dataDir, why, cause: error })
}
