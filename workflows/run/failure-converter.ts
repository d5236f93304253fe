import { DefaultFailureConverter } from '@temporalio/common'

declare global {
  /** Set in front of the bundle (worker/workflow-bundle.ts) where payloads are encrypted. */
  var connectorEncodesFailures: boolean | undefined
}

/** Makes payloads of the messages of failures, where payloads are encrypted. */
export const failureConverter = new DefaultFailureConverter({
  encodeCommonAttributes: globalThis.connectorEncodesFailures === true,
})
