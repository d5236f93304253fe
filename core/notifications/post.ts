import type { ClientRequest } from 'node:http'
import got, { RequestError, type Response } from 'got'
import { createConnections } from '../billing/connections.ts'
import { retryAfterMs } from '../billing/reply.ts'

/** The result of one attempt to deliver to one channel. */
export type Delivery =
  | { outcome: 'delivered' }
  /** The channel rejected it and would reject it again. */
  | { outcome: 'refused'; why: string }
  | { outcome: 'later'; why: string; afterMs?: number }

const timeoutMs = 10_000
/**
 * How long after a stop a response is still awaited: a POST given up on is repeated, and people are notified twice. A worker
 * is ended by force from 5 s after its stop on, and by then Temporal must have the result.
 */
const graceMs = 4_000
const maxMessageLength = 200
/** The limit on a response body; only its beginning is shown. */
const maxAnswerBytes = 64 * 1024
/** The longest delay before the next attempt, even if the channel asks for more. */
const maxAfterMs = 3_600_000

/**
 * Sends one POST without redirects or retries. Messages never include the URL, because anyone who knows it can post
 * there. After a stop it waits for the response a little longer.
 */
export async function postNotification(options: {
  url: string
  body: unknown
  id: string
  signal: AbortSignal
}): Promise<Delivery> {
  const { url, body, id, signal } = options
  const channel = new URL(url).host
  const givingUp = new AbortController()
  let grace: NodeJS.Timeout | undefined
  const onStop = () => (grace = setTimeout(() => givingUp.abort(signal.reason), graceMs))
  signal.throwIfAborted()
  signal.addEventListener('abort', onStop)
  try {
    const reply = await post({ url, body, id, signal: givingUp.signal })
    const { statusCode: status, body: text } = reply
    if (status >= 200 && status < 300) return { outcome: 'delivered' }
    const why = `${channel} answered ${status}: ${withoutAddress({ text: oneLine(text), url }).slice(0, maxMessageLength)}`
    // 408 and 429 are temporary; any other 4xx, or a redirect, means the notification or the URL is wrong.
    const isTemporary = status >= 500 || status === 408 || status === 429
    if (!isTemporary) return { outcome: 'refused', why }
    const afterMs = retryAfterMs(reply)
    return afterMs === undefined
      ? { outcome: 'later', why }
      : { outcome: 'later', why, afterMs: Math.min(afterMs, maxAfterMs) }
  } catch (error) {
    givingUp.signal.throwIfAborted()
    if (!(error instanceof RequestError)) throw error
    // got's own error contains the request with its URL.
    return { outcome: 'later', why: `${channel} did not answer (${error.code})` }
  } finally {
    signal.removeEventListener('abort', onStop)
    clearTimeout(grace)
  }
}

type Answer = Pick<Response<string>, 'statusCode' | 'headers' | 'body'>

/** Reads the response. A body that is too long is dropped, because the status is enough. */
async function post(options: {
  url: string
  body: unknown
  id: string
  signal: AbortSignal
}): Promise<Answer> {
  const { url, body, id, signal } = options
  const tooLong = new AbortController()
  let head: Pick<Answer, 'statusCode' | 'headers'> | undefined
  const sending = got.post(url, {
    json: body,
    headers: { 'user-agent': 'connector', 'idempotency-key': id },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    responseType: 'text',
    timeout: { request: timeoutMs },
    agent: createConnections({ url, maxConnections: 1, keepAlive: false }),
    signal: AbortSignal.any([signal, tooLong.signal]),
  })
  // got reports a response only when it is complete.
  void sending.on('request', (request: ClientRequest) =>
    request.once('response', ({ statusCode = 0, headers }) => (head = { statusCode, headers })),
  )
  void sending.on('downloadProgress', ({ transferred }) => {
    if (transferred > maxAnswerBytes) tooLong.abort()
  })
  try {
    return await sending
  } catch (error) {
    if (!tooLong.signal.aborted || head === undefined) throw error
    return { ...head, body: `an answer of more than ${maxAnswerBytes} bytes` }
  }
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** Shorter parts of a URL are not secret and may be ordinary words. */
const minSecretLength = 6

/** Removes the URL's parts from a response: many servers echo the request (`Cannot POST /hooks/...`). */
function withoutAddress({ text, url }: { text: string; url: string }): string {
  const { pathname, search, searchParams, username, password } = new URL(url)
  const parts = [pathname, search, username, password, ...pathname.split('/'), ...searchParams.values()]
  return [...parts, ...parts.map(decode)]
    .filter((part) => part.length >= minSecretLength)
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, part) => text.replaceAll(part, '...'), text)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
