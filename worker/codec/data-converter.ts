import type { DataConverter } from '@temporalio/common'
import { fileURLToPath } from 'node:url'
import { createPayloadCodec } from './payload-codec.ts'
import type { PayloadKey } from './payload-key.ts'

const failureConverterPath = fileURLToPath(new URL('./failure-converter.ts', import.meta.url))

/** How the worker and every client write to Temporal and read from it. Without keys, as the SDK does. */
export const toDataConverter = (keys: readonly PayloadKey[]): DataConverter => ({
  payloadCodecs: [createPayloadCodec(keys)],
  // Without encryption the Temporal UI would show every failure as "Encoded failure", for nothing.
  ...(keys.length > 0 && { failureConverterPath }),
})
