import type { DataConverter, Payload, PayloadCodec } from '@temporalio/common'
import proto from '@temporalio/proto'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { PayloadKey } from '../settings/kinds.ts'

/** Temporal's SDK loads it by path. */
const failureConverterPath = fileURLToPath(new URL('./failure-converter.ts', import.meta.url))

/** The data converter of the worker and every client. Without keys, it equals the SDK's. */
export const toDataConverter = (keys: readonly PayloadKey[]): DataConverter => ({
  payloadCodecs: [createPayloadCodec(keys)],
  // Without encryption, encoding would only make the Temporal UI show every failure as "Encoded failure".
  ...(keys.length > 0 && { failureConverterPath }),
})

// The layout of Temporal's samples: nonce, encrypted payload with its metadata, tag.
const encoding = 'binary/encrypted'
const cipher = 'aes-256-gcm'
const nonceLength = 12
const tagLength = 16

/**
 * A payload is encrypted with a key that this process does not have. A retry helps only with other settings.
 */
export class PayloadKeyError extends Error {
  override readonly name = 'PayloadKeyError'
  readonly exitCode = 2
  readonly hint =
    'Give the worker and every command the same CONNECTOR_PAYLOAD_KEY_FILE, with every key that open runs were written with.'
  constructor({ id, known }: { id: string; known: readonly string[] }) {
    const ours = known.length === 0 ? 'this process has no key' : `this process has ${known.join(', ')}`
    super(`What Temporal keeps here is encrypted with the key ${id}, and ${ours}.`)
  }
}

/**
 * Encrypts payloads with the first key (AES-256-GCM) and decrypts them with the key they name. Without keys,
 * encrypts nothing. Unencrypted payloads are read as they are: the Temporal UI sends inputs this way, and
 * runs started before there was a key wrote them so.
 * @throws {PayloadKeyError} from `decode`, if the named key is missing
 */
export function createPayloadCodec(keys: readonly PayloadKey[]): PayloadCodec {
  const [first] = keys
  return {
    encode: async (payloads) => (first === undefined ? payloads : payloads.map(encrypt(first))),
    decode: async (payloads, context) =>
      payloads.map((payload) => {
        const id = keyIdOf(payload)
        if (id === undefined) return payload
        const key = keys.find((one) => one.id === id)
        if (key !== undefined) return decrypt(payload, key)
        // Only a schedule's memo comes without context. The list may include another connector's, with other
        // keys: treat that as one without a memo.
        if (context === undefined) return nothing
        throw new PayloadKeyError({ id, known: keys.map((one) => one.id) })
      }),
  }
}

/** Reads nothing that is encrypted: for lists of runs, whose keys may be lost. Their search attributes never are. */
export const blankingCodec: PayloadCodec = {
  encode: async (payloads) => payloads,
  decode: async (payloads) => payloads.map((payload) => (keyIdOf(payload) === undefined ? payload : nothing)),
}

/** The key that a payload is encrypted with; undefined if it is not encrypted. */
export function keyIdOf({ metadata }: Payload): string | undefined {
  return textOf(metadata?.['encoding']) === encoding ? textOf(metadata?.['encryption-key-id']) : undefined
}

const textOf = (bytes: Uint8Array | null | undefined) => Buffer.from(bytes ?? []).toString()

const nothing: Payload = { metadata: { encoding: Buffer.from('binary/null') } }

const PayloadMessage = proto.temporal.api.common.v1.Payload

const encrypt =
  ({ id, secret }: PayloadKey) =>
  (payload: Payload): Payload => {
    const nonce = randomBytes(nonceLength)
    const sealing = createCipheriv(cipher, secret, nonce)
    const sealed = sealing.update(PayloadMessage.encode(payload).finish())
    return {
      metadata: { encoding: Buffer.from(encoding), 'encryption-key-id': Buffer.from(id) },
      data: Buffer.concat([nonce, sealed, sealing.final(), sealing.getAuthTag()]),
    }
  }

function decrypt({ data }: Payload, { id, secret }: PayloadKey): Payload {
  try {
    return PayloadMessage.decode(open(Buffer.from(data ?? []), secret))
  } catch (cause) {
    throw new Error(`What Temporal keeps here was changed after it was encrypted with the key ${id}.`, {
      cause,
    })
  }
}

function open(bytes: Buffer, secret: Uint8Array): Buffer {
  const nonce = bytes.subarray(0, nonceLength)
  const opening = createDecipheriv(cipher, secret, nonce, { authTagLength: tagLength })
  opening.setAuthTag(bytes.subarray(-tagLength))
  return Buffer.concat([opening.update(bytes.subarray(nonceLength, -tagLength)), opening.final()])
}
