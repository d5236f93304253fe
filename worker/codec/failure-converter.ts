import { DefaultFailureConverter } from '@temporalio/common'

/** Of the steps' failures, where payloads are encrypted: their messages are payloads then. Temporal's SDK loads it by its path. */
export const failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true })
