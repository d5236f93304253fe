import { defaultPayloadConverter, type PayloadConverter } from '@temporalio/common'
import { unreadable } from './unreadable.ts'

/**
 * Reads payloads as the SDK does, and gives a mark in the place of what it can't read: a workflow whose input is no
 * JSON would otherwise hang in a task that is tried again for ever. The interceptors refuse what carries the mark.
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
