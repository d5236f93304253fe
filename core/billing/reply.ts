import { isServiceError, toMessages } from './error-body.ts'
import {
  type BillingError,
  Forbidden,
  LostReply,
  NotFound,
  RateLimited,
  Refused,
  ServiceFault,
  Unauthorized,
  UnexpectedReply,
} from './errors.ts'
import { isRecord, parseLossless } from './lossless-json.ts'
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

export interface FetchedDocument {
  record: Record<string, unknown>
  /** Milliseconds since a cache got it from the service; undefined without an Age header. */
  ageMs: number | undefined
}

type RequestInfo = Pick<Request, 'method' | 'path' | 'token' | 'query'>
type Headers = Pick<Reply, 'headers'>

/** The statuses that say something about the request. */
const answers = {
  400: Refused,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Refused,
  422: Refused,
  429: RateLimited,
} as const

/** The error for a reply; undefined for a success. */
export function toError(request: RequestInfo, reply: Reply): BillingError | undefined {
  const { method, path, token } = request
  const { status } = reply
  if (status >= 200 && status < 300) return undefined
  const body = toBody(reply)
  const failure = {
    // Without its exact text, nobody knows that the service itself wrote it.
    byService: 'value' in body && isServiceError({ status, body: body.value }),
    method,
    path,
    status,
    ageMs: ageMsOf(reply),
    messages: toMessages('value' in body ? body.value : body.text, token),
  }
  const Answer = answers[status as keyof typeof answers]
  if (Answer !== undefined) return new Answer(failure)
  if (status >= 500 || status === 408) return new ServiceFault(failure)
  if (status >= 300 && status < 400) {
    const why = `it points to ${describeLocation(headerOf(reply, 'location'))} and is not followed`
    return new UnexpectedReply({ ...failure, problem: 'redirect', why })
  }
  return new UnexpectedReply({ ...failure, problem: 'status', why: 'a status that the API does not define' })
}

/** Without path, query and user, which may repeat the token or the request: the message is widely visible. */
function describeLocation(location: string): string {
  if (location === '') return 'nowhere'
  const place = URL.parse(location, `http://${sameHost}`)
  return place === null || place.host === sameHost ? 'another path' : `${place.protocol}//${place.host}`
}
/** The base for relative addresses. */
const sameHost = 'same.invalid'

const headerOf = ({ headers }: Headers, name: string): string => [headers[name]].flat()[0]?.trim() ?? ''

/** How long to wait according to Retry-After: in seconds, or as a date by the service's clock. */
export function retryAfterMs(reply: Headers): number | undefined {
  const text = headerOf(reply, 'retry-after')
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const until = Date.parse(text)
  return Number.isNaN(until) ? undefined : Math.max(0, until - (dateOf(reply) ?? Date.now()))
}

/** The Date header; ms since 1970. */
function dateOf(reply: Headers): number | undefined {
  const date = Date.parse(headerOf(reply, 'date'))
  return Number.isNaN(date) ? undefined : date
}

/** The Age header: how long ago a cache got this response from the service. */
function ageMsOf(reply: Headers): number | undefined {
  const text = headerOf(reply, 'age')
  return /^\d+$/.test(text) ? Math.min(Number(text), oldestAge) * 1000 : undefined
}
/** The maximum a cache reports; larger values give no valid date. */
const oldestAge = 2 ** 31

/** The maximum difference between the clocks of the service's servers. */
export const clocksDifferMs = 5_000

/**
 * The envelope of a list (interface, section 4.1). With `since`, in ms of the monotonic clock, the page must not have
 * been generated before: a cache may ignore `no-cache`.
 */
export function toListPage(request: RequestInfo, reply: Reply, since = Number.NEGATIVE_INFINITY): ListPage {
  const { results, count, next } = toRecord(request, reply)
  if (!Array.isArray(results))
    throw unexpected(request, reply, 'notTheShape', 'it is not a list with `results`')
  const ageMs = ageMsOf(reply)
  const date = dateOf(reply)
  if (ageMs !== undefined && ageMs > performance.now() - since + clocksDifferMs)
    throw unexpected(request, reply, 'stale', `a cache answered with a reply of ${ageMs / 1_000} s ago`)
  return {
    records: results,
    count: isCount(count) ? count : undefined,
    next: typeof next === 'string' || next === null ? next : undefined,
    servedAt: date === undefined ? undefined : date - (ageMs ?? 0),
    ...(ageMs !== undefined && { ageMs }),
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

/** A record, with its age if a cache answered. */
export const toDocument = (request: RequestInfo, reply: Reply): FetchedDocument => ({
  record: toRecord(request, reply),
  ageMs: ageMsOf(reply),
})

/** The reply as one JSON object. */
export function toRecord(request: RequestInfo, reply: Reply): Record<string, unknown> {
  const body = toBody(reply)
  if (!('value' in body)) throw notJson(request, reply, body)
  if (!isRecord(body.value)) throw unexpected(request, reply, 'notTheShape', 'it is not a JSON object')
  return body.value
}

/** Accepts an empty reply or JSON; anything else is a gateway's page. */
export function expectNothing(request: RequestInfo, reply: Reply): void {
  const body = toBody(reply)
  if ('text' in body && body.text.trim() !== '') throw notJson(request, reply, body)
}

/** A body as JSON. Otherwise its text, good only to be shown, and what is wrong with it. */
type Body = { value: unknown } | { text: string; problem: 'notJson' | 'notText' | 'tooLarge'; why: string }

function toBody(reply: Reply): Body {
  const { text, fault } = decode(reply)
  if (hasTooManyValues(text)) return { text, problem: 'tooLarge', why: `more than ${maxValues} values` }
  // What does not end as an object does is a gateway's page, or was cut off. UTF-16 has a NUL at its end.
  if (fault !== undefined && /\}[\s\0]*$/.test(text)) return { text, problem: 'notText', why: fault }
  const none: Body = { text, problem: 'notJson', why: 'a body that is not JSON' }
  try {
    return fault === undefined ? { value: parseLossless(text) } : none
  } catch {
    return none
  }
}

function notJson(request: RequestInfo, reply: Reply, body: Exclude<Body, { value: unknown }>): BillingError {
  const { text, problem, why } = body
  if (problem === 'tooLarge') return unexpected(request, reply, problem, why)
  const page = request.query?.['page']
  if (problem === 'notText')
    return unexpected(request, reply, problem, page === undefined ? why : `${why} (page ${page})`)
  const { method, path, token } = request
  // JSON that is not complete was cut off.
  if (/^\s*[[{]/.test(text))
    return new LostReply({
      method,
      path,
      status: reply.status,
      why: `${text.length} characters of incomplete JSON`,
    })
  const messages = toMessages(text, token)
  return unexpected(request, reply, problem, messages.length === 0 ? 'an empty body' : why, messages)
}

function unexpected(
  { method, path }: RequestInfo,
  { status }: Reply,
  problem: UnexpectedReply['problem'],
  why: string,
  messages: readonly string[] = [],
): UnexpectedReply {
  return new UnexpectedReply({ method, path, status, messages, problem, why })
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
  for (const separator of ',{[')
    for (let at = text.indexOf(separator); at >= 0; at = text.indexOf(separator, at + 1))
      if (++values > maxValues) return true
  return false
}

/** JSON is UTF-8 (RFC 8259), whatever the header says. Never with replacement characters; both strip a byte order mark. */
const strict = new TextDecoder('utf-8', { fatal: true })
const lenient = new TextDecoder()

/** The text of a body. With a fault, it is good only to be shown. */
function decode({ bytes }: Pick<Reply, 'bytes'>): { text: string; fault?: string } {
  try {
    const text = strict.decode(bytes)
    // UTF-16 and UTF-32 may be valid UTF-8, with a NUL in every other place. JSON has none.
    if (!text.includes('\0')) return { text }
  } catch {}
  return { text: lenient.decode(bytes), fault: 'its text is not UTF-8' }
}
