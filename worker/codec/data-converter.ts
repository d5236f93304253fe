import type { DataConverter } from '@temporalio/common'
import { fileURLToPath } from 'node:url'
import { createPayloadCodec } from './payload-codec.ts'
import type { PayloadKey } from './payload-key.ts'

const failureConverterPath = fileURLToPath(new URL('./failure-converter.ts', import.meta.url))

/** The data converter of the worker and every client. Without keys, it equals the SDK's. */
export const toDataConverter = (keys: readonly PayloadKey[]): DataConverter => ({
  payloadCodecs: [createPayloadCodec(keys)],
  // Without encryption, encoding would only make the Temporal UI show every failure as "Encoded failure".
  ...(keys.length > 0 && { failureConverterPath }),
})
