import { DefaultFailureConverter } from '@temporalio/common'

declare global {
  /** Set at the start of the bundle (worker/workflow-bundle.ts) if payloads are encrypted. */
  var connectorEncodesFailures: boolean | undefined
}

/** Moves failure messages into payloads if payloads are encrypted, so that the messages are encrypted too. */
export const failureConverter = new DefaultFailureConverter({
  encodeCommonAttributes: globalThis.connectorEncodesFailures === true,
})
