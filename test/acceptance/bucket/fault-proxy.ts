import { S3Client, PutObjectCommand } from '@aws-sdk/client-s3'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { keys } from './gateway.ts'

/**
 * What happens to one call: `unavailable` answers 503; `denied` answers 403; `lost` lets it take effect and loses the reply; `away` closes the
 * connection before; `cut` closes it in the middle of the reply; `unconditional` carries out a write whose condition
 * fails, as a store does that knows no conditions; `gone` completes an upload of several parts and says that it knows none;
 * `torn` answers with the text before the last one and the tag of the last one.
 */
export type Fault = 'unavailable' | 'denied' | 'lost' | 'away' | 'cut' | 'unconditional' | 'gone' | 'torn'

export interface Call {
  method: string
  /** Without bucket and query. */
  path: string
  query: string
}

/** Stands in front of an object store and breaks the calls that `faults` names. */
export async function startFaultProxy(endpoint: string) {
  const upstream = new URL(endpoint)
  const client = new S3Client({ endpoint, region: 'us-east-1', credentials: keys, forcePathStyle: true })
  const state = {
    faults: (_call: Call): Fault | undefined => undefined,
    counts: new Map<Fault | 'calls', number>(),
  }
  /** The last two texts put under each path. */
  const texts = new Map<string, Buffer[]>()
  const count = (name: Fault | 'calls') => state.counts.set(name, (state.counts.get(name) ?? 0) + 1)

  async function handle(call: IncomingMessage, reply: ServerResponse) {
    const { method = '', url = '', headers } = call
    const key = decodeURIComponent(url.replace(/\?.*$/, '')).replace(/^\/[^/]*\//, '')
    const fault = state.faults({ method, path: key, query: url.replace(/^[^?]*/, '') })
    count('calls')
    if (fault !== undefined) count(fault)
    if (fault === 'away') {
      call.socket.destroy()
      return
    }
    const body = await buffer(call)
    if (fault === 'unavailable') {
      answerError(reply, 503, 'SlowDown')
      return
    }
    if (fault === 'denied') {
      answerError(reply, 403, 'AccessDenied')
      return
    }
    const forwarded = request({ host: upstream.hostname, port: upstream.port, method, path: url, headers })
    forwarded.end(body)
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage]
    const content = await buffer(answer)
    if (method === 'PUT' && answer.statusCode === 200) texts.set(key, [texts.get(key)?.at(-1) ?? body, body])
    if (fault === 'lost') {
      call.socket.destroy()
      return
    }
    if (fault === 'gone') {
      answerError(reply, 404, 'NoSuchUpload')
      return
    }
    if (fault === 'unconditional' && answer.statusCode === 412) {
      const { ETag = '' } = await client.send(
        new PutObjectCommand({ Bucket: 'exports', Key: key, Body: body }),
      )
      reply.writeHead(200, { etag: ETag })
      reply.end()
      return
    }
    const before = fault === 'torn' ? texts.get(key)?.[0] : undefined
    if (before !== undefined) {
      reply.writeHead(200, { ...answer.headers, 'content-length': before.length })
      reply.end(before)
      return
    }
    reply.writeHead(answer.statusCode ?? 500, answer.headers)
    if (fault === 'cut' && content.length > 0)
      reply.write(content.subarray(0, content.length / 2), () => call.socket.destroy())
    else reply.end(content)
  }

  const server = createServer((call, reply) => {
    handle(call, reply).catch(() => call.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts: state.counts,
    /** Decides about every call from now on. */
    setFaults(faults: (call: Call) => Fault | undefined) {
      state.faults = faults
    },
    async close() {
      client.destroy()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function answerError(reply: ServerResponse, status: number, code: string): void {
  reply.writeHead(status, { 'content-type': 'application/xml' })
  reply.end(`<Error><Code>${code}</Code><Message>by the test</Message></Error>`)
}

/** Numbers from 0 to 1 that a seed determines. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
