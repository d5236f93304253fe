import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { detail } from './answer.ts'
import type { RequestEntry } from './audit.ts'
import { answerControl } from './control-routes.ts'
import type { Control } from './control.ts'
import { parseExactJson } from './exact-json.ts'
import { type Asked, outcomeOf } from './outcome.ts'
import { findRoute } from './routes.ts'
import { send } from './send.ts'
import type { Service } from './service.ts'

export function createHttpServer(service: Service, control: Control): Server {
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? '/'
    if (url.startsWith('/_sandbox/')) return answerControl({ control, request, response, url })
    const entry = service.audit.receive(request.method ?? 'GET', url)
    const asked = await ask(service, request, entry)
    const outcome = await outcomeOf(service, asked)
    if (outcome !== 'reset') service.audit.answer(entry, outcome.status)
    const date = service.settings.dateHeader ? service.clock.nowMs() : undefined
    await send({ response, outcome, cut: asked.struck.find('cutBody'), date })
    if (asked.route?.list !== undefined) service.drifter.afterRequest(asked.route.list)
  }
  const server = createServer((request, response) => {
    serve(request, response).catch(async (error: unknown) => {
      // A client that disconnected needs no response; any other error is a bug in the sandbox or its
      // options.
      if (request.destroyed && !request.complete) return
      const outcome = detail(500, `sandbox: ${String(error)}`)
      if (!response.headersSent) await send({ response, outcome, cut: undefined, date: Date.now() })
    })
  })
  // As in nginx: closing idle connections too early would be an unplanned fault.
  server.keepAliveTimeout = 75_000
  return server
}

async function ask(service: Service, request: IncomingMessage, entry: RequestEntry): Promise<Asked> {
  const [path, query] = split(entry.url)
  const { route, operation, id, known } = findRoute(entry.method, path)
  let body: unknown
  if (entry.method !== 'GET') {
    entry.body = await read(request)
    body = entry.body === '' ? {} : tryParse(entry.body)
  }
  const struck = service.plan.strike({ operation, id, body })
  if (struck.kinds.length > 0) entry.faults = struck.kinds
  return { request, entry, path, query, operation, id, route, known, body, struck }
}

function split(url: string): [string, string] {
  const mark = url.indexOf('?')
  return mark < 0 ? [url, ''] : [url.slice(0, mark), url.slice(mark + 1)]
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** Parses a body as JSON; the operation rejects an invalid one, after all earlier checks. */
function tryParse(text: string): unknown {
  try {
    return parseExactJson(text)
  } catch (error) {
    return error
  }
}
