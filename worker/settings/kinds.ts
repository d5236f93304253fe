import { createHmac } from 'node:crypto'
import { delimiter, resolve } from 'node:path'
import { z } from 'zod'
import { isLoopback } from '../../core/billing/connections.ts'
import { parseBucketAddress } from '../../core/storage/bucket-store.ts'
import { codePointOf, invisible, type Given } from './environment.ts'

/**
 * Parses a set variable into its value. Every message completes the sentence "<NAME> <message>": what is
 * wrong and, after the semicolon, how to fix it. The reporter shows the text unless it is secret.
 */
const given: z.ZodType<Given> = z
  .object({ text: z.string(), from: z.string(), folder: z.string() })
  .superRefine(({ text: value }, context) => {
    const message = oddText(value)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })

/** What is in a value that nobody typed on purpose: with it, a folder, a key or a name would be another one. */
function oddText(value: string): string | undefined {
  const letter = invisible.exec(value)?.[0]
  if (letter !== undefined) return `contains the invisible letter ${codePointOf(letter)}; remove it`
  if (value.includes('\ufffd')) return 'contains bytes that are not UTF-8; save it as UTF-8'
  if (/^[“”„«‘’‚″＂]|^(["'`]).*\1$/su.test(value))
    return 'begins with a quote that is part of the value; remove the quotes, or use one pair of straight ones in .env'
  return undefined
}

export const text = given.transform((variable) => variable.text)

/** Resolves a path against the folder of the file or environment that set the variable. */
export const path = given
  .refine(
    ({ text: value }) => !/^~(\/|$)|^\$\{?[A-Za-z_]/.test(value),
    'begins with what only a shell replaces; write the path in full',
  )
  .transform((variable) => resolve(variable.folder, variable.text))

/** Several paths, separated as in PATH. */
export const pathList = given.transform((variable) =>
  variable.text
    .split(delimiter)
    .filter((part) => part.trim() !== '')
    .map((part) => resolve(variable.folder, part)),
)

/** Valid characters of an HTTP header value here; anything else would make the request malformed. */
export const visibleAscii = /^[\x21-\x7e]+$/

export const headerValue = text.pipe(
  z
    .string()
    .regex(visibleAscii, 'contains a space, a line break or a non-ASCII character; set it exactly as issued'),
)

export const oneOf = <const Word extends string>(words: readonly Word[]) =>
  text.pipe(z.enum(words, { error: `is not one of ${words.join(', ')}; use one of these words` }))

export const flag = oneOf(['true', 'false']).transform((word) => word === 'true')

export function number(bounds: { from: number; to: number; unit: string; whole?: true }) {
  const { from, to, unit, whole } = bounds
  const message = `is not a ${whole ? 'whole ' : ''}number from ${from} to ${to}; set the ${unit} in digits`
  return text
    .pipe(z.string().regex(whole ? /^\d+$/ : /^\d+(\.\d+)?$/, message))
    .transform(Number)
    .pipe(z.number().min(from, message).max(to, message))
}

/** A base address: http or https, without user, password, query and trailing slash. */
export const address = text
  .pipe(
    z.url({
      protocol: /^https?$/,
      error: 'is not an http or https address; use one like https://api.example.com',
    }),
  )
  .transform((value) => new URL(value))
  .refine(({ username, password }) => username === '' && password === '', {
    error: 'contains a user or a password; remove them, the token goes into BILLING_TOKEN',
  })
  .refine(({ search, hash }) => search === '' && hash === '', {
    error: 'contains a query or a fragment (? or #); use the address that all paths begin with',
  })
  .transform(({ href }) => href.replace(/\/+$/, ''))

/** Whether data sent to an address is encrypted or stays on this machine. */
export const isConfidential = (address: string): boolean =>
  new URL(address).protocol === 'https:' || isLoopback(address)

export const postgresAddress = text.refine(
  (value) => /^postgres(ql)?:$/.test(URL.parse(value)?.protocol ?? ''),
  'is not a postgres:// or postgresql:// address; write it in full, with special characters in the password percent-encoded',
)

/** The address of a bucket, with an optional prefix. */
export const bucketAddress = text.transform((value, context) => {
  const address = parseBucketAddress(value)
  if (address !== undefined) return address
  context.addIssue({
    code: 'custom',
    message:
      'is not the address of a bucket; use one like s3://bucket/prefix, in letters, digits and -._ only',
  })
  return z.NEVER
})

/** A host and port to listen on. Port 0 picks a free one. */
export const listenAddress = text
  .pipe(
    z
      .string()
      .regex(
        /^(\[[0-9a-fA-F:.]+\]|[^\s:]+):\d{1,5}$/,
        'is not a host with a port; use one like 127.0.0.1:9464',
      ),
  )
  .transform((value) => {
    const colon = value.lastIndexOf(':')
    return { host: value.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(value.slice(colon + 1)) }
  })
  .refine(({ port }) => port <= 65_535, 'has a port above 65535; use one like 127.0.0.1:9464')

/**
 * Addresses separated by spaces, each with an optional `<level>=` prefix; the default is the usual level.
 */
export function leveledAddresses<const Level extends string>(levels: readonly Level[], usual: Level) {
  return text
    .transform((written) =>
      written.split(/\s+/).map((part) => {
        const level = levels.find((one) => part.startsWith(`${one}=`))
        return { level: level ?? usual, url: level === undefined ? part : part.slice(level.length + 1) }
      }),
    )
    .refine(
      (parts) => parts.every(({ url }) => /^https?:\/\/[^/]/.test(url) && URL.canParse(url)),
      `is not a list of https addresses; separate them with spaces, and put nothing or ${levels.join('=, ')}= before each`,
    )
}

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
