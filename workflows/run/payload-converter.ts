import { defaultPayloadConverter, type PayloadConverter } from '@temporalio/common'
import { unreadable } from './unreadable.ts'

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
