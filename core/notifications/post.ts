import type { ClientRequest } from 'node:http'
import got, { RequestError, type Response } from 'got'
import { createConnections } from '../billing/connections.ts'
import { retryAfterMs } from '../billing/reply.ts'

/** What became of one try to tell one receiver. */
export type Delivery =
  | { outcome: 'delivered' }
  /** It understood and does not want it: the same again would be refused again. */
  | { outcome: 'refused'; why: string }
  | { outcome: 'later'; why: string; afterMs?: number }

const timeoutMs = 10_000
const mostWords = 200
/** Of an answer; only its first words are told. */
const mostAnswerBytes = 64 * 1024
/** A receiver that asks for more is asked again by then all the same. */
const longestAfterMs = 3_600_000

/** One POST: follows nothing, retries nothing. The address is in no sentence: whoever knows it can write there. */
export async function postNotice(options: {
  url: string
  body: unknown
  id: string
  signal: AbortSignal
}): Promise<Delivery> {
  const { url, body, id, signal } = options
  const receiver = new URL(url).host
  try {
    const reply = await post({ url, body, id, signal })
    const { statusCode: status, body: words } = reply
    if (status >= 200 && status < 300) return { outcome: 'delivered' }
    const why = `${receiver} answered ${status}: ${withoutAddress({ words: oneLine(words), url }).slice(0, mostWords)}`
    // 408 and 429 are about the moment; every other of the 4xx, and a redirect, about the notice or the address.
    const isAboutNow = status >= 500 || status === 408 || status === 429
    if (!isAboutNow) return { outcome: 'refused', why }
    const afterMs = retryAfterMs(reply)
    return afterMs === undefined
      ? { outcome: 'later', why }
      : { outcome: 'later', why, afterMs: Math.min(afterMs, longestAfterMs) }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof RequestError)) throw error
    // got's own error holds the request with its address.
    return { outcome: 'later', why: `${receiver} did not answer (${error.code})` }
  }
}

type Answer = Pick<Response<string>, 'statusCode' | 'headers' | 'body'>

/** The answer, without its body where that is too long: the status says what is needed. */
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
    headers: { 'user-agent': 'billing-connector', 'idempotency-key': id },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    responseType: 'text',
    timeout: { request: timeoutMs },
    agent: createConnections({ url, most: 1, keepAlive: false }),
    signal: AbortSignal.any([signal, tooLong.signal]),
  })
  // got tells of a response when it has all of it.
  void sending.on('request', (request: ClientRequest) =>
    request.once('response', ({ statusCode = 0, headers }) => (head = { statusCode, headers })),
  )
  void sending.on('downloadProgress', ({ transferred }) => {
    if (transferred > mostAnswerBytes) tooLong.abort()
  })
  try {
    return await sending
  } catch (error) {
    if (!tooLong.signal.aborted || head === undefined) throw error
    return { ...head, body: `an answer of more than ${mostAnswerBytes} bytes` }
  }
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** Shorter parts of an address are no secret, and may be words. */
const leastSecret = 6

/** Many a server repeats in its answer what it was asked for (`Cannot POST /hooks/...`). */
function withoutAddress({ words, url }: { words: string; url: string }): string {
  const { pathname, search, searchParams, username, password } = new URL(url)
  const parts = [pathname, search, username, password, ...pathname.split('/'), ...searchParams.values()]
  return [...parts, ...parts.map(decode)]
    .filter((part) => part.length >= leastSecret)
    .toSorted((a, b) => b.length - a.length)
    .reduce((text, part) => text.replaceAll(part, '...'), words)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
