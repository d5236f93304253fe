import { createHmac } from 'node:crypto'
import { z } from 'zod'

/** A key that encrypts payloads in Temporal. */
export interface PayloadKey {
  /** Identifies the key without revealing it; in the metadata of each payload. */
  id: string
  /** 32 bytes. */
  secret: Uint8Array
}

/** One or more keys, separated by white space. */
export const payloadKeys = z.string().transform((text, context): PayloadKey[] => {
  const keys = text.trim().split(/\s+/)
  const secrets = keys.map((key) => Buffer.from(key, 'base64'))
  if (secrets.every((secret, at) => secret.length === 32 && secret.toString('base64') === keys[at]))
    return secrets.map((secret) => ({ id: idOf(secret), secret }))
  context.addIssue({
    code: 'custom',
    message: 'is not 32 bytes in base64; make a key with `openssl rand -base64 32`, one a line',
  })
  return z.NEVER
})

const idOf = (secret: Uint8Array) => createHmac('sha256', secret).update('key id').digest('hex').slice(0, 8)
