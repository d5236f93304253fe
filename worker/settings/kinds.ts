import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { isLoopback } from '../../core/billing/connections.ts'

/**
 * How the text of a variable becomes a value. Every message completes the sentence "<NAME> <message>": what is
 * wrong, and after the semicolon what to do. The text itself is shown by the reader, which knows what is secret.
 */
export const text = z.string()

/** Goes into a header: visible ASCII only, or the request itself would be refused as malformed. */
export const headerValue = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'holds a space, a line break or a letter outside ASCII; give it exactly as issued')

export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is no header name; give one like x-simple-workspace')

export const flag = z
  .enum(['true', 'false'], { error: 'is neither true nor false; write one of the two words' })
  .transform((word) => word === 'true')

export function oneOf<const Word extends string>(words: readonly Word[]) {
  return z.enum(words, { error: `is none of ${words.join(', ')}; write one of these words` })
}

/** Where a server of ours listens. Port 0: any free one. */
export const listenAddress = z.string().transform((value, context) => {
  const [, host, port] = /^(\[[0-9a-fA-F:.]+\]|[^\s:]+):(\d{1,5})$/.exec(value) ?? []
  if (host !== undefined && Number(port) <= 65_535)
    return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
  context.addIssue({ code: 'custom', message: 'is no host with a port; give one like 127.0.0.1:9464' })
  return z.NEVER
})

export function number(bounds: { from: number; to: number; unit: string }) {
  const message = `is not a number from ${bounds.from} to ${bounds.to}; give the ${bounds.unit} as digits`
  return z
    .string()
    .regex(/^\d+(\.\d+)?$/, message)
    .transform(Number)
    .pipe(z.number().min(bounds.from, message).max(bounds.to, message))
}

export function wholeNumber(bounds: { from: number; to: number; unit: string }) {
  const message = `is not a whole number from ${bounds.from} to ${bounds.to}; give the ${bounds.unit} as digits`
  return z
    .string()
    .regex(/^\d+$/, message)
    .transform(Number)
    .pipe(z.number().min(bounds.from, message).max(bounds.to, message))
}

/** An address as it is put before paths: no trailing slash. */
export const address = z.string().transform((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const wrong = url === undefined ? 'is no address; give one like https://api.example.com' : wrongAddress(url)
  if (url === undefined || wrong !== undefined) {
    context.addIssue({ code: 'custom', message: wrong ?? '' })
    return z.NEVER
  }
  return url.href.replace(/\/+$/, '')
})

function wrongAddress(url: URL): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return 'is neither an https nor an http address; give one like https://api.example.com'
  }
  if (url.username !== '' || url.password !== '') {
    return 'holds a user or a password; take them out, the token goes into BILLING_TOKEN'
  }
  if (url.search !== '' || url.hash !== '') {
    return 'holds a query or a fragment (? or #); give the address that all paths begin with'
  }
  return undefined
}

/** Also `http` without `s` is safe where nothing leaves the machine. */
export function isSafeWithoutAllowance(address: string): boolean {
  return new URL(address).protocol === 'https:' || isLoopback(address)
}

export function urlOf(protocols: readonly string[]) {
  const named = protocols.map((protocol) => `${protocol}//`).join(' or ')
  return z.string().refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol), {
    error: `is no ${named} address; write it in full, with special characters in the password percent-encoded`,
  })
}

/** Addresses with spaces between them, each with its level and `=` before it or, without one, at the middle level. */
export function leveledAddresses<const Level extends string>(levels: readonly Level[], usual: Level) {
  return z.string().transform((written, context) => {
    const parts = written.split(/\s+/).map((part) => {
      const level = levels.find((one) => part.startsWith(`${one}=`))
      return { level: level ?? usual, url: level === undefined ? part : part.slice(level.length + 1) }
    })
    const isAddress = ({ url }: { url: string }) => /^https?:\/\/[^/]/.test(url) && URL.canParse(url)
    if (parts.every(isAddress)) return parts
    const message = `holds what is no https address; give addresses with spaces between them, each with ${levels.join('=, ')}= or nothing before it`
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })
}

/** A path, not resolved yet: what it is relative to depends on where it was written. */
export const path = z.string().transform((written) => (folder: string) => resolve(folder, written))

/** Several folders, separated as PATH is on this machine. */
export function pathList(separator: string) {
  return z.string().transform(
    (written) => (folder: string) =>
      written
        .split(separator)
        .filter((part) => part.trim() !== '')
        .map((part) => (isAbsolute(part) ? part : resolve(folder, part))),
  )
}
