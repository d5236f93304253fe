import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Control, RecordSelection } from './control.ts'
import { parseExactJson } from './exact-json.ts'

const methods = [
  'setFaults',
  'addFault',
  'setDrift',
  'freeze',
  'unfreeze',
  'drift',
  'adjust',
  'insert',
  'update',
  'delete',
  'restore',
  'get',
  'mark',
  'ids',
  'landLateEffects',
  'counters',
] as const satisfies readonly (keyof Control)[]

/** Methods that return JSON lines of any number. */
const streams: Readonly<Record<string, (control: Control, options: never) => Iterable<string>>> = {
  records: (control, options: RecordSelection) => control.records(options),
  requests: (control, options: { after?: number }) => lines(control.requests(options)),
  effects: (control, options: { after?: number }) => lines(control.effects(options)),
}

function* lines(values: readonly unknown[]) {
  for (const value of values) yield JSON.stringify(value)
}

/**
 * Calls a control method: `POST /_sandbox/<method>` takes its argument as the body and returns its result as
 * JSON, or JSON lines.
 */
export async function answerControl(options: {
  control: Control
  request: IncomingMessage
  response: ServerResponse
  url: string
}): Promise<void> {
  const { control, request, response } = options
  const name = options.url.slice('/_sandbox/'.length)
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  try {
    const argument = parseExactJson(Buffer.concat(chunks).toString() || '{}')
    const stream = Object.hasOwn(streams, name) ? streams[name] : undefined
    if (stream !== undefined) return await answerLines(response, stream(control, argument as never))
    const method = methods.find((known) => known === name)
    if (method === undefined || request.method !== 'POST')
      return answer(response, 404, { error: `no such call: ${name}` })
    const call = control[method] as (argument: unknown) => unknown
    answer(response, 200, call.call(control, argument) ?? null)
  } catch (error) {
    answer(response, 400, { error: error instanceof Error ? error.message : String(error) })
  }
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

async function answerLines(response: ServerResponse, values: Iterable<string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  for (const value of values) {
    if (!response.write(`${value}\n`) && !response.destroyed) await once(response, 'drain')
    if (response.destroyed) return
  }
  response.end()
}
