import { isServiceError } from './error-body.ts'
import {
  Forbidden,
  LostReply,
  NotFound,
  RateLimited,
  Refused,
  ServiceFault,
  Unauthorized,
  UnexpectedReply,
  type BillingError,
  type Failure,
} from './errors.ts'
import { parseLossless } from './lossless-json.ts'
import type { Reply, Request } from './transport.ts'
import { toWords } from './words.ts'

/** One response of a list: exactly what came, nothing repaired. */
export interface ListPage {
  records: unknown[]
  /** A hint only: the service counts in another statement than it lists. */
  count: number | undefined
  /** A hint only, never followed. */
  next: string | null | undefined
  /**
   * When the service made this answer, in ms since 1970: its Date less its Age, so that what comes from a cache
   * shows how old it is.
   */
  servedAt: number | undefined
  /** How long a cache has kept this answer, in ms; absent where none says so. */
  ageMs?: number
}

type Asked = Pick<Request, 'method' | 'path' | 'token' | 'query'>

/** The error that a reply is, or undefined for a success. */
export function toError(asked: Asked, reply: Reply): BillingError | undefined {
  const { status } = reply
  if (status >= 200 && status < 300) return undefined
  const parsed = parseOr(reply.text)
  // Before a long sentence is cut: a part of the token is too much as well.
  const text = reply.text.replaceAll(asked.token, '***')
  const body = parseOr(text)
  const words = toWords(body.json ? body.value : text)
  const failure = {
    byService: parsed.json && isServiceError({ status, body: parsed.value }),
    method: asked.method,
    path: asked.path,
    status,
    ageMs: ageMsOf(reply),
    // JSON may have written it with escapes.
    words: words.map((sentence) => sentence.replaceAll(asked.token, '***')),
  }
  if (status === 401) return new Unauthorized(failure)
  if (status === 403) return new Forbidden(failure)
  if (status === 404) return new NotFound(failure)
  if (status === 400 || status === 409 || status === 422) return new Refused(failure)
  if (status === 429) return new RateLimited({ ...failure, retryAfterMs: retryAfterMs(reply) })
  if (status >= 500) return new ServiceFault(failure)
  if (status >= 300 && status < 400) return toRedirect(failure, reply)
  return new UnexpectedReply({ ...failure, what: 'status', why: 'no status that the interface knows' })
}

function toRedirect(failure: Failure, reply: Reply): UnexpectedReply {
  const location = [reply.headers['location']].flat()[0]
  return new UnexpectedReply({
    ...failure,
    what: 'redirect',
    why: `it points to ${placeOf(location)}, and is not followed`,
  })
}

/** Without path, query and user: they may repeat the token or what was asked for, and this message goes everywhere. */
function placeOf(location: string | undefined): string {
  if (location === undefined) return 'nowhere'
  const place = URL.parse(location, `http://${sameHost}`)
  return place === null || place.host === sameHost ? 'another path' : `${place.protocol}//${place.host}`
}
/** What an address without a host of its own is read against. */
const sameHost = 'same.invalid'

/** How long the service asks to be left alone: Retry-After in seconds, or as a date on its own clock. */
export function retryAfterMs(reply: Pick<Reply, 'headers'>): number | undefined {
  const text = [reply.headers['retry-after']].flat()[0]?.trim()
  if (text === undefined || text === '') return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const until = Date.parse(text)
  return Number.isNaN(until) ? undefined : Math.max(0, until - (dateOf(reply) ?? Date.now()))
}

/** The Date header; ms since 1970. */
function dateOf(reply: Pick<Reply, 'headers'>): number | undefined {
  const date = Date.parse([reply.headers['date']].flat()[0] ?? '')
  return Number.isNaN(date) ? undefined : date
}

/** The Age header: how long ago a cache had this answer from the service. */
function ageMsOf(reply: Pick<Reply, 'headers'>): number | undefined {
  const text = [reply.headers['age']].flat()[0]?.trim() ?? ''
  return /^\d+$/.test(text) ? Math.min(Number(text), oldestAge) * 1000 : undefined
}
/** What a cache says of all that is older; beyond it there are no dates. */
const oldestAge = 2 ** 31

export interface FetchedDocument {
  record: Record<string, unknown>
  /** Undefined if no cache says that it answered. */
  ageMs: number | undefined
}

/** The envelope of a list (interface, section 4.1). */
export function toListPage(asked: Asked, reply: Reply): ListPage {
  const { results, count, next } = toRecord(asked, reply)
  if (!Array.isArray(results)) throw notTheShape(asked, reply, 'no list with `results`')
  const most = Number(asked.query?.['page_size'] ?? Infinity)
  if (results.length > most)
    throw notTheShape(asked, reply, `${results.length} records, where ${most} were asked for`)
  const ageMs = ageMsOf(reply)
  const date = dateOf(reply)
  return {
    records: results,
    count: typeof count === 'number' ? count : undefined,
    next: typeof next === 'string' || next === null ? next : undefined,
    servedAt: date === undefined ? undefined : date - (ageMs ?? 0),
    ...(ageMs !== undefined && { ageMs }),
  }
}

/** A record, and how long ago a cache had it from the service. */
export const toDocument = (asked: Asked, reply: Reply): FetchedDocument => ({
  record: toRecord(asked, reply),
  ageMs: ageMsOf(reply),
})

/** The one JSON object that a reply is. */
export function toRecord(asked: Asked, reply: Reply): Record<string, unknown> {
  if (hasTooManyValues(reply.text)) throw tooLarge(asked, reply)
  const body = parseOr(reply.text)
  if (!body.json) throw notJson(asked, reply)
  const { value } = body
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw notTheShape(asked, reply, 'no JSON object')
  return value as Record<string, unknown>
}

/** A reply without a body; anything but JSON in its place is a gateway's page. */
export function expectNothing(asked: Asked, reply: Reply): void {
  if (reply.text.trim() !== '' && !parseOr(reply.text).json) throw notJson(asked, reply)
}

/**
 * Of one reply; a page of 100 records has some ten thousand. What a text becomes in memory goes by its values and
 * not by its bytes: 3 bytes of `{},` become 60.
 */
const mostValues = 500_000

/** Counted by what stands between values, also inside texts: an upper bound, in one pass without parsing. */
function hasTooManyValues(text: string): boolean {
  if (text.length <= mostValues) return false
  let values = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if ((code === comma || code === openBrace || code === openBracket) && ++values > mostValues) return true
  }
  return false
}
const comma = 0x2c
const openBrace = 0x7b
const openBracket = 0x5b

function tooLarge({ method, path }: Asked, { status }: Reply): UnexpectedReply {
  const why = `more than ${mostValues} values`
  return new UnexpectedReply({ method, path, status, what: 'tooLarge', why })
}

function parseOr(text: string): { json: true; value: unknown } | { json: false } {
  // Of an error nothing is lost: its words are bounded, and one that is not read may have been done.
  if (hasTooManyValues(text)) return { json: false }
  try {
    return { json: true, value: parseLossless(text) }
  } catch {
    return { json: false }
  }
}

/** JSON that stops in the middle was cut off; anything else is somebody else's page. */
function notJson(asked: Asked, reply: Reply): BillingError {
  const { method, path } = asked
  const { status } = reply
  if (/^\s*[[{]/.test(reply.text))
    return new LostReply({
      method,
      path,
      status,
      why: `${reply.text.length} characters that are no whole JSON`,
    })
  const start = toWords(reply.text)[0]
  const words = start === undefined ? [] : [start.replaceAll(asked.token, '***')]
  const why = start === undefined ? 'an empty body' : 'a body that is not JSON'
  return new UnexpectedReply({ method, path, status, words, what: 'notJson', why })
}

function notTheShape(asked: Asked, reply: Reply, why: string): UnexpectedReply {
  return new UnexpectedReply({
    method: asked.method,
    path: asked.path,
    status: reply.status,
    what: 'notTheShape',
    why,
  })
}
