import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Answer, detail } from './answer.ts'
import type { RequestEntry } from './audit.ts'
import { type Control, createControl } from './control.ts'
import { parseExactJson } from './data/values.ts'
import type { FaultOf } from './faults.ts'
import { findRoute } from './operations.ts'
import type { SandboxOptions } from './options.ts'
import { type Asked, outcomeOf } from './outcome.ts'
import { createService, type Service } from './service.ts'

/** A running stand-in for the billing service. */
export interface Sandbox {
  /** The base address for clients: `http://127.0.0.1:<port>`, unless another host is set. */
  url: string
  port: number
  /** The token that clients must send. */
  token: string
  workspace: string
  control: Control
  /** Closes every connection and cancels timers and late effects. */
  close(): Promise<void>
}

/**
 * Starts a small, faithful, stateful stand-in for the billing service on 127.0.0.1 that behaves like Django
 * REST framework. The same options give the same data; random choices follow the seed and the order of
 * requests.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const service = createService(options)
  const control = createControl(service)
  const server = createHttpServer(service, control)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(service.settings.port, service.settings.host, resolve)
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('sandbox: no port was opened')
  const { host } = service.settings
  return {
    url: `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${address.port}`,
    port: address.port,
    token: service.settings.token,
    workspace: service.settings.workspace,
    control,
    close: async () => {
      service.drifter.close()
      service.later.close()
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}

function createHttpServer(service: Service, control: Control): Server {
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? '/'
    if (url.startsWith('/_sandbox/'))
      return answerControl({ control, request, response, name: url.slice('/_sandbox/'.length) })
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

/**
 * Calls a method of the control: `POST /_sandbox/<method>` takes its argument as the body and returns its result as JSON, a
 * list as JSON lines.
 */
async function answerControl(options: {
  control: Control
  request: IncomingMessage
  response: ServerResponse
  name: string
}): Promise<void> {
  const { control, request, response, name } = options
  const answer = (status: number, value: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
  const body = await read(request)
  if (!Object.hasOwn(control, name) || request.method !== 'POST')
    return void answer(404, { error: `no such call: ${name}` })
  try {
    const call = control[name as keyof Control] as (argument: unknown) => unknown
    const value = call(parseExactJson(body || '{}')) ?? null
    if (typeof value !== 'object' || value === null || !(Symbol.iterator in value))
      return void answer(200, value)
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    const isJson = !Array.isArray(value)
    for (const item of value as Iterable<unknown>) {
      const line = isJson ? (item as string) : JSON.stringify(item)
      if (!response.write(`${line}\n`) && !response.destroyed) await once(response, 'drain')
      if (response.destroyed) return
    }
    response.end()
  } catch (error) {
    answer(400, { error: error instanceof Error ? error.message : String(error) })
  }
}

async function ask(service: Service, request: IncomingMessage, entry: RequestEntry): Promise<Asked> {
  const [path, query] = split(entry.url)
  const { route, operation, id, known } = findRoute(entry.method, path)
  let body: unknown
  if (entry.method !== 'GET') {
    entry.body = await read(request)
    body = entry.body === '' ? {} : tryParse(entry.body)
  }
  const struck = service.faults.strike({ operation, id, body })
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

/** Writes a response, or what a fault leaves of it. */
async function send(options: {
  response: ServerResponse
  outcome: Answer | 'reset'
  cut: FaultOf<'cutBody'> | undefined
  /** The Date header: the service's time in ms, which may differ from this machine's; undefined: none. */
  date: number | undefined
}): Promise<void> {
  const { response, outcome, cut } = options
  if (outcome === 'reset') {
    response.socket?.resetAndDestroy()
    return
  }
  const body = Buffer.isBuffer(outcome.body) ? outcome.body : Buffer.from(outcome.body ?? '')
  const kept = cut === undefined ? body : body.subarray(0, Math.floor(body.length * (cut.keep ?? 0.5)))
  const broken = cut !== undefined && cut.framing !== 'whole'
  response.sendDate = false
  response.writeHead(outcome.status, {
    ...(outcome.status === 204 ? {} : { 'content-type': 'application/json' }),
    ...(outcome.status === 204 ? {} : { 'content-length': broken ? body.length : kept.length }),
    ...(options.date === undefined ? {} : { date: new Date(options.date).toUTCString() }),
    ...outcome.headers,
  })
  if (!broken) {
    response.end(kept)
    return
  }
  await new Promise<void>((resolve) => response.write(kept, () => resolve()))
  response.destroy()
}
