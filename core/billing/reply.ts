import { isServiceError, toMessages } from './error-body.ts'
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
import { decodeReply } from './reply-text.ts'
import type { Reply, Request } from './transport.ts'

/** One response of a list, unchanged. */
export interface ListPage {
  records: unknown[]
  /** A hint only: the service counts in a separate statement. */
  count: number | undefined
  /** A hint only, never followed. */
  next: string | null | undefined
  /**
   * When the service generated this response, in ms since 1970: its Date minus its Age, so responses from a cache show
   * their age.
   */
  servedAt: number | undefined
  /** How long a cache has kept this response, in ms; absent without an Age header. */
  ageMs?: number
}

type RequestInfo = Pick<Request, 'method' | 'path' | 'token' | 'query'>

/** The error for a reply; undefined for a success. */
export function toError(request: RequestInfo, reply: Reply): BillingError | undefined {
  const { status } = reply
  if (status >= 200 && status < 300) return undefined
  const { text, fault } = decodeReply(reply)
  // Without its exact text, nobody knows that the service itself wrote it.
  const body = fault === undefined ? parseOr(text) : ({ json: false } as const)
  const failure = {
    byService: body.json && isServiceError({ status, body: body.value }),
    method: request.method,
    path: request.path,
    status,
    ageMs: ageMsOf(reply),
    messages: toMessages(body.json ? body.value : text, request.token),
  }
  if (status === 401) return new Unauthorized(failure)
  if (status === 403) return new Forbidden(failure)
  if (status === 404) return new NotFound(failure)
  if (status === 400 || status === 409 || status === 422) return new Refused(failure)
  if (status === 429) return new RateLimited({ ...failure, retryAfterMs: retryAfterMs(reply) })
  if (status >= 500 || status === 408) return new ServiceFault(failure)
  if (status >= 300 && status < 400) return toRedirect(failure, reply)
  return new UnexpectedReply({ ...failure, problem: 'status', why: 'a status that the API does not define' })
}

function toRedirect(failure: Failure, reply: Reply): UnexpectedReply {
  const location = [reply.headers['location']].flat()[0]
  return new UnexpectedReply({
    ...failure,
    problem: 'redirect',
    why: `it points to ${describeLocation(location)} and is not followed`,
  })
}

/** Without path, query and user, which may repeat the token or the request: the message is widely visible. */
function describeLocation(location: string | undefined): string {
  if (location === undefined) return 'nowhere'
  const place = URL.parse(location, `http://${sameHost}`)
  return place === null || place.host === sameHost ? 'another path' : `${place.protocol}//${place.host}`
}
/** The base for relative addresses. */
const sameHost = 'same.invalid'

/** How long to wait according to Retry-After: in seconds, or as a date by the service's clock. */
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

/** The Age header: how long ago a cache got this response from the service. */
function ageMsOf(reply: Pick<Reply, 'headers'>): number | undefined {
  const text = [reply.headers['age']].flat()[0]?.trim() ?? ''
  return /^\d+$/.test(text) ? Math.min(Number(text), oldestAge) * 1000 : undefined
}
/** The maximum a cache reports; larger values give no valid date. */
const oldestAge = 2 ** 31

export interface FetchedDocument {
  record: Record<string, unknown>
  /** Milliseconds since a cache got it from the service; undefined without an Age header. */
  ageMs: number | undefined
}

/** The envelope of a list (interface, section 4.1). */
export function toListPage(request: RequestInfo, reply: Reply): ListPage {
  const { results, count, next } = toRecord(request, reply)
  if (!Array.isArray(results)) throw notTheShape(request, reply, 'it is not a list with `results`')
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

/** The maximum difference between the clocks of the service's servers. */
export const clocksDifferMs = 5_000

/** A page that was not generated before `since`, in ms of the monotonic clock; a cache may ignore `no-cache`. */
export function toFreshPage(request: RequestInfo, reply: Reply, since: number): ListPage {
  const page = toListPage(request, reply)
  const { ageMs = 0 } = page
  if (ageMs <= performance.now() - since + clocksDifferMs) return page
  const { method, path } = request
  const why = `a cache answered with a reply of ${ageMs / 1_000} s ago`
  throw new UnexpectedReply({ method, path, status: reply.status, problem: 'stale', why })
}

/** A record, with its age if a cache answered. */
export const toDocument = (request: RequestInfo, reply: Reply): FetchedDocument => ({
  record: toRecord(request, reply),
  ageMs: ageMsOf(reply),
})

/** Whether the body ends as an object does: a gateway's page does not, and seldom what was cut off. */
function mayBeWhole({ bytes }: Reply): boolean {
  return bytes.findLast((byte) => byte > space) === closeBrace
}
const space = 0x20
const closeBrace = 0x7d

/** The reply as one JSON object. */
export function toRecord(request: RequestInfo, reply: Reply): Record<string, unknown> {
  const { text, fault } = decodeReply(reply)
  if (hasTooManyValues(text)) throw tooLarge(request, reply)
  if (fault !== undefined && mayBeWhole(reply)) throw notText(request, reply, fault)
  const body = parseOr(text)
  if (!body.json) throw notJson(request, reply, text)
  const { value } = body
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw notTheShape(request, reply, 'it is not a JSON object')
  return value as Record<string, unknown>
}

/** Accepts an empty reply or JSON; anything else is a gateway's page. */
export function expectNothing(request: RequestInfo, reply: Reply): void {
  const { text, fault } = decodeReply(reply)
  if (text.trim() === '') return
  if (fault !== undefined) throw notText(request, reply, fault)
  if (!parseOr(text).json) throw notJson(request, reply, text)
}

/**
 * The maximum number of values in one reply; a page of 100 records has about ten thousand. Memory use depends on values,
 * not on bytes: 3 bytes of `{},` become 60.
 */
const maxValues = 500_000

/** Counts separators, also inside strings: an upper bound, in one pass without parsing. */
function hasTooManyValues(text: string): boolean {
  if (text.length <= maxValues) return false
  let values = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if ((code === comma || code === openBrace || code === openBracket) && ++values > maxValues) return true
  }
  return false
}
const comma = 0x2c
const openBrace = 0x7b
const openBracket = 0x5b

function tooLarge({ method, path }: RequestInfo, { status }: Reply): UnexpectedReply {
  const why = `more than ${maxValues} values`
  return new UnexpectedReply({ method, path, status, problem: 'tooLarge', why })
}

function parseOr(text: string): { json: true; value: unknown } | { json: false } {
  // Safe for errors, too: their messages are limited anyway, and an unreadable reply counts as unknown.
  if (hasTooManyValues(text)) return { json: false }
  try {
    return { json: true, value: parseLossless(text) }
  } catch {
    return { json: false }
  }
}

/** Incomplete JSON was cut off; anything else is a gateway's page. */
function notJson(request: RequestInfo, { status }: Reply, text: string): BillingError {
  const { method, path, token } = request
  if (/^\s*[[{]/.test(text))
    return new LostReply({
      method,
      path,
      status,
      why: `${text.length} characters of incomplete JSON`,
    })
  const messages = toMessages(text, token)
  const why = messages.length === 0 ? 'an empty body' : 'a body that is not JSON'
  return new UnexpectedReply({ method, path, status, messages, problem: 'notJson', why })
}

function notText({ method, path, query }: RequestInfo, { status }: Reply, fault: string): UnexpectedReply {
  const page = query?.['page']
  const why = page === undefined ? fault : `${fault} (page ${page})`
  return new UnexpectedReply({ method, path, status, problem: 'notText', why })
}

function notTheShape(request: RequestInfo, reply: Reply, why: string): UnexpectedReply {
  return new UnexpectedReply({
    method: request.method,
    path: request.path,
    status: reply.status,
    problem: 'notTheShape',
    why,
  })
}
