import type { ServerResponse } from 'node:http'
import type { Answer } from './answer.ts'
import type { FaultOf } from './faults.ts'

/** Writes a response, or what a fault leaves of it. */
export async function send(options: {
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
