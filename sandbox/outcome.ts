import type { IncomingMessage } from 'node:http'
import { type Answer, detail, errorAnswer, htmlPage, notFound } from './answer.ts'
import type { RequestEntry } from './audit.ts'
import { createTokenBucket, type FaultOf, retryAfter, type Struck } from './faults.ts'
import type { Route } from './operations.ts'
import type { Mode } from './options.ts'
import type { Call, Service } from './service.ts'

/** A request and its operation. */
export interface Asked {
  request: IncomingMessage
  entry: RequestEntry
  path: string
  query: string
  operation: string
  id: string
  route: Route | undefined
  known: boolean
  body: unknown
  struck: Struck
}

/** `reset` closes the connection without a response. */
export type Outcome = Answer | 'reset'

/** Determines the outcome of a request: faults before it, the operation, faults after it. */
export async function outcomeOf(service: Service, asked: Asked): Promise<Outcome> {
  const { struck } = asked
  await wait(service, struck, 'before')
  for (const limit of struck.all('throttle')) {
    const refused = throttle(service, limit)
    if (refused !== undefined) return refused
  }
  const lost = struck.find('reset')
  const failed = struck.find('error')
  if (lost !== undefined && lost.effect !== 'done') return 'reset'
  if (failed !== undefined && failed.effect !== 'done') return errorAnswer(failed)
  const instead = answerInstead(struck)
  if (instead !== undefined) return instead

  const expired = struck.find('expireToken')
  if (expired !== undefined) {
    service.tokens.clear()
    if (expired.next !== undefined) service.tokens.add(expired.next)
  }
  const late = struck.find('lateEffect')
  if (late !== undefined) {
    service.later.schedule(late.seconds, () => void answerOf(service, asked, 'late effect'))
    return late.reply === 'error' ? errorAnswer({}) : 'reset'
  }
  const answer = answerOf(service, asked, 'request')
  await wait(service, struck, 'after')
  if (lost !== undefined) return 'reset'
  return failed === undefined ? answer : errorAnswer(failed)
}

/** The response of something in front of the service. */
function answerInstead(struck: Struck): Answer | undefined {
  const gone = struck.find('notFound')
  if (gone !== undefined) return gone.html === true ? htmlPage(404) : notFound()
  const refused = struck.find('refuse')
  return refused && { status: refused.status ?? 400, body: JSON.stringify(refused.answer) }
}

/** The service's own response: authenticates, finds the target, runs the operation. */
function answerOf(service: Service, asked: Asked, by: 'request' | 'late effect'): Answer {
  const { settings } = service
  const { headers } = asked.request
  const authenticate = { 'www-authenticate': 'Token' }
  const token = /^Token (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) return detail(401, 'Authentication credentials were not provided.', authenticate)
  if (!service.tokens.has(token)) return detail(401, 'Invalid token.', authenticate)
  const workspace = headers['x-simple-workspace']
  if (workspace === undefined) return detail(400, 'The header x-simple-workspace is required.')
  if (workspace !== settings.workspace)
    return detail(403, 'You do not have permission to perform this action.')
  if (asked.route === undefined)
    return asked.known ? detail(405, `Method "${asked.entry.method}" not allowed.`) : notFound()
  const type = headers['content-type'] ?? ''
  if (asked.entry.body && !type.startsWith('application/json'))
    return detail(415, `Unsupported media type "${type}" in request.`)
  if (asked.body instanceof SyntaxError) return detail(400, `JSON parse error - ${asked.body.message}`)
  return asked.route.answer(toCall(service, asked, by))
}

function toCall(service: Service, asked: Asked, by: 'request' | 'late effect'): Call {
  const { settings } = service
  const asksTest = asked.request.headers['x-service-test-mode'] === 'true'
  const mode: Mode = asksTest && settings.honoursTestMode ? 'test' : 'live'
  return {
    service,
    mode,
    world: service.worlds[mode],
    id: asked.id,
    path: asked.path,
    query: new URLSearchParams(asked.query),
    base: `http://${asked.request.headers.host ?? '127.0.0.1'}`,
    body: asked.body,
    struck: asked.struck,
    cause: { by, request: asked.entry.request },
  }
}

function throttle({ clock, buckets }: Service, limit: FaultOf<'throttle'>): Answer | undefined {
  const { nowMs } = clock
  const take = buckets.get(limit) ?? createTokenBucket(limit, nowMs)
  buckets.set(limit, take)
  const seconds = take()
  if (seconds === 0) return undefined
  const words = `Request was throttled. Expected available in ${Math.ceil(seconds)} seconds.`
  const { retryAfter: form = 'seconds' } = limit
  const headers = form === 'none' ? {} : { 'retry-after': retryAfter({ seconds, form, nowMs: nowMs() }) }
  return detail(429, words, headers)
}

async function wait(service: Service, struck: Struck, where: 'before' | 'after'): Promise<void> {
  for (const latency of struck.all('latency')) {
    if ((latency.where ?? 'before') !== where) continue
    const ms = latency.ms + service.chance.fraction() * (latency.jitterMs ?? 0)
    await new Promise<void>((resolve) => service.later.schedule(ms / 1000, resolve))
  }
}
