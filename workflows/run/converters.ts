import { DefaultFailureConverter, defaultPayloadConverter, type PayloadConverter } from '@temporalio/common'

declare global {
  /** Set at the start of the bundle (worker/workflow-bundle.ts) if payloads are encrypted. */
  var connectorEncodesFailures: boolean | undefined
}

/** Moves failure messages into payloads if payloads are encrypted, so that the messages are encrypted too. */
export const failureConverter = new DefaultFailureConverter({
  encodeCommonAttributes: globalThis.connectorEncodesFailures === true,
})

/** The placeholder of a payload that is not JSON. */
const unreadable = '__unreadable'

export const isUnreadable = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, unreadable)

/**
 * Reads payloads as the SDK does, but replaces those it cannot read with a placeholder: a workflow whose input is
 * not JSON would otherwise hang in a task that is retried forever. The interceptors refuse the placeholder.
 */
export const payloadConverter: PayloadConverter = {
  toPayload: (value) => defaultPayloadConverter.toPayload(value),
  fromPayload(payload) {
    try {
      return defaultPayloadConverter.fromPayload(payload)
    } catch {
      return { [unreadable]: true } as never
    }
  },
}
