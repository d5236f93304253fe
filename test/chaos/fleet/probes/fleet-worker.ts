/**
 * One of several workers on one state and a bucket. It stops itself (SIGSTOP) at the point of a write that its
 * parent names in a message: the next write that gets there.
 */
import { ClientRequest, OutgoingMessage } from 'node:http'
import { Client } from 'pg'
import { temporalPlace } from '../../../../scripts/session/temporal.ts'
import { processSettings } from '../../../../scripts/commands/options.ts'
import { startWorker } from '../../../../worker/start-worker.ts'
import type { FreezePoint } from '../fleet.ts'

let armed: FreezePoint | undefined
process.on('message', (point: FreezePoint | 'none') => {
  armed = point === 'none' ? undefined : point
})

function freezeAt(point: FreezePoint): void {
  if (armed !== point) return
  armed = undefined
  process.kill(process.pid, 'SIGSTOP')
}

/** A claim is one statement, which is a transaction of its own; a move counts no claim up. */
const isClaim = ([text]: unknown[]) => String(text).includes('"claims" = "claims" + ')
const prototype = Client.prototype as unknown as { query: (...options: unknown[]) => Promise<unknown> }
const { query } = prototype
prototype.query = function freezing(this: Client, ...options: unknown[]) {
  if (!isClaim(options)) return query.apply(this, options)
  const result = query.apply(this, options)
  // Its bytes leave in this turn; the answer is not read before the worker wakes.
  setImmediate(() => freezeAt('insideClaim'))
  return result.then((value) => {
    freezeAt('afterClaim')
    return value
  })
}

/** The first call hands head and body to the kernel. */
const written = new WeakSet<ClientRequest>()
for (const name of ['write', 'end'] as const) {
  const hand = ClientRequest.prototype[name] as (...options: unknown[]) => unknown
  const freezing = function freezing(this: ClientRequest, ...options: unknown[]) {
    const isFirst =
      this.method !== 'GET' && this.getHeader('authorization') !== undefined && !written.has(this)
    if (!isFirst) return hand.apply(this, options)
    written.add(this)
    freezeAt('afterLook')
    const result = hand.apply(this, options)
    freezeAt('afterWrite')
    return result
  }
  Object.defineProperty(ClientRequest.prototype, name, {
    value: freezing,
    writable: true,
    configurable: true,
  })
}
const setHeader = Object.getOwnPropertyDescriptor(OutgoingMessage.prototype, 'setHeader')?.value as (
  name: string,
  ...values: unknown[]
) => ClientRequest
Object.defineProperty(ClientRequest.prototype, 'setHeader', {
  value: function freezing(this: ClientRequest, name: string, ...values: unknown[]) {
    // The request is created, and its connection is being established.
    if (name.toLowerCase() === 'authorization' && this.method !== 'GET')
      setImmediate(() => freezeAt('beforeClaim'))
    return setHeader.call(this, name, ...values)
  },
})

const settings = processSettings()
const worker = await startWorker({
  settings,
  temporal: temporalPlace(settings),
  standing: true,
})
process.send?.('listening')
await worker.ended
