import { createHmac } from 'node:crypto'
import { delimiter, resolve } from 'node:path'
import { z } from 'zod'
import { isLoopback } from '../../core/billing/connections.ts'
import { parseBucketAddress } from '../../core/storage/bucket-store.ts'
import { codePointOf, invisible, type SetVariable } from './environment.ts'

/**
 * Parses a set variable into its value. Every message completes the sentence "<NAME> <message>": what is
 * wrong and, after the semicolon, how to fix it. The reporter shows the text unless it is secret.
 */
const variable: z.ZodType<SetVariable> = z
  .object({ text: z.string(), from: z.string(), folder: z.string() })
  .superRefine(({ text }, context) => {
    const problem = oddText(text)
    if (problem !== undefined) context.addIssue(problem)
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

export const text = variable.transform(({ text }) => text)

/** Resolves a path against the folder of the file or environment that set the variable. */
export const path = variable
  .refine(
    ({ text }) => !/^~(\/|$)|^\$\{?[A-Za-z_]/.test(text),
    'begins with what only a shell replaces; write the path in full',
  )
  .transform(({ folder, text }) => resolve(folder, text))

/** Several paths, separated as in PATH. */
export const pathList = variable.transform(({ folder, text }) =>
  text
    .split(delimiter)
    .filter((part) => part.trim() !== '')
    .map((part) => resolve(folder, part)),
)

/** Valid characters of an HTTP header value here; anything else would make the request malformed. */
export const visibleAscii = /^[\x21-\x7e]+$/

export const headerValue = text.refine(
  (value) => visibleAscii.test(value),
  'contains a space, a line break or a non-ASCII character; set it exactly as issued',
)

export const oneOf = <const Word extends string>(words: readonly Word[]) =>
  text
    .pipe(z.enum(words, { error: `is not one of ${words.join(', ')}; use one of these words` }))
    .meta({ form: words.map((word) => `\`${word}\``).join(' or ') })

export const flag = oneOf(['true', 'false'])
  .transform((word) => word === 'true')
  .meta({ form: '`true` or `false`' })

export function number({ from, to, whole = false }: { from: number; to: number; whole?: boolean }) {
  const form = `a ${whole ? 'whole ' : ''}number from ${from} to ${to}`
  const digits = whole ? /^\d+$/ : /^\d+(\.\d+)?$/
  const fits = (value: string) => digits.test(value) && Number(value) >= from && Number(value) <= to
  return text.refine(fits, `is not ${form}; write it in digits`).transform(Number).meta({ form })
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
  .refine(
    ({ username, password }) => username === '' && password === '',
    'contains a user or a password; remove them, the token goes into BILLING_TOKEN',
  )
  .refine(
    ({ search, hash }) => search === '' && hash === '',
    'contains a query or a fragment (? or #); use the address that all paths begin with',
  )
  .transform(({ href }) => href.replace(/\/+$/, ''))

/** Whether data sent to an address is encrypted or stays on this machine. */
export const isConfidential = (address: string): boolean =>
  new URL(address).protocol === 'https:' || isLoopback(address)

function isDecodable(address: string): boolean {
  try {
    return decodeURIComponent(address) !== ''
  } catch {
    return false
  }
}

export const postgresAddress = text
  .refine(
    (value) => /^postgres(ql)?:$/.test(URL.parse(value)?.protocol ?? '') && isDecodable(value),
    'is not a postgres:// or postgresql:// address; write it in full, with special characters in the password percent-encoded',
  )
  .meta({ form: '`postgres://user:password@host/database`' })

/** The address of a bucket, with an optional prefix. */
export const bucketAddress = text
  .transform(parseBucketAddress)
  .refine(
    (bucket) => bucket !== undefined,
    'is not the address of a bucket; use one like s3://bucket/prefix, in letters, digits and -._ only',
  )

/** A host and port to listen on. Port 0 picks a free one. */
export const listenAddress = text
  .transform((value) => {
    const [, ipv6, host = ipv6, port] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:]+)):(\d{1,5})$/.exec(value) ?? []
    return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
  })
  .refine(
    (listened) => listened !== undefined,
    'is not a host with a port up to 65535; use one like 127.0.0.1:9464',
  )

/**
 * Addresses separated by spaces, each with an optional `<level>=` prefix; the default is the usual level.
 */
export const leveledAddresses = <const Level extends string>(levels: readonly Level[], usual: Level) =>
  text
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

/** A key that encrypts payloads in Temporal. */
export interface PayloadKey {
  /** Identifies the key without revealing it; in the metadata of each payload. */
  id: string
  /** 32 bytes. */
  secret: Uint8Array
}

/** One or more keys, separated by white space. */
export const payloadKeys = z
  .string()
  .refine(
    (keys) => keys.trim().split(/\s+/).every(isKey),
    'is not 32 bytes in base64; make a key with `openssl rand -base64 32`, one a line',
  )
  .transform((keys): PayloadKey[] =>
    keys
      .trim()
      .split(/\s+/)
      .map((key) => {
        const secret = Buffer.from(key, 'base64')
        return { id: createHmac('sha256', secret).update('key id').digest('hex').slice(0, 8), secret }
      }),
  )

function isKey(key: string): boolean {
  const secret = Buffer.from(key, 'base64')
  return secret.length === 32 && secret.toString('base64') === key
}
