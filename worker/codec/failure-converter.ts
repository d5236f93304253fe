import { DefaultFailureConverter } from '@temporalio/common'

/**
 * Converts failures when payloads are encrypted: their messages become payloads. Temporal's SDK loads this
 * file by path.
 */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
