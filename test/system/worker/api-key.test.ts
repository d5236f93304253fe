import { writeFile } from 'node:fs/promises'
import { connect as connectHttp2, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createWorld, startCommand, until } from '../export/world.ts'

/** A front of Temporal that lets in who has a valid key, as Temporal Cloud does, and keeps which keys came. */
async function startFront(keys: Set<string>) {
  const upstream = connectHttp2(`http://${inject('temporalAddress')}`)
  const used = new Set<string>()
  const server = createServer()
  server.on('stream', (stream: ServerHttp2Stream, { authorization = '', ...headers }) => {
    const key = authorization.replace('Bearer ', '')
    used.add(key)
    if (!keys.has(key)) {
      const no = { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '16' }
      stream.respond({ ...no, 'grpc-message': 'Request unauthorized.' }, { endStream: true })
      return
    }
    const passed = upstream.request({
      ...headers,
      ':scheme': 'http',
      ':authority': inject('temporalAddress'),
    })
    stream.pipe(passed)
    let trailers = {}
    passed.on('trailers', (given) => (trailers = given))
    passed.on('response', (answer, flags) => {
      const { ':status': status, ...more } = answer
      // Trailers only: the whole answer is one block of headers.
      const isAll = (flags & 1) === 1
      stream.respond({ ':status': status ?? 200, ...more }, { waitForTrailers: !isAll, endStream: isAll })
      stream.on('wantTrailers', () => stream.sendTrailers(trailers))
      if (!isAll) passed.pipe(stream)
    })
    stream.on('close', () => passed.close())
    for (const one of [stream, passed]) one.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    upstream.destroy()
    server.close()
  })
  return { address: `localhost:${(server.address() as AddressInfo).port}`, used }
}

test(
  'a worker and a command use a new API key for Temporal as soon as its file has it',
  { tags: ['long'] },
  async () => {
    const keys = new Set(['key-1'])
    const front = await startFront(keys)
    const world = await createWorld({
      counts: { customers: 400, plans: 3 },
      faults: [{ kind: 'latency', ms: 400 }],
    })
    const file = join(world.dataDir, 'temporal-api-key')
    await writeFile(file, 'key-1\n', { mode: 0o600 })
    const env = {
      TEMPORAL_ADDRESS: front.address,
      TEMPORAL_API_KEY_FILE: file,
      // With a key, the SDK uses TLS by itself.
      TEMPORAL_TLS: 'false',
    }
    const worker = startCommand(world, ['worker'], { env })
    await worker.says('"listening"')
    const exporting = startCommand(world, ['export', 'customers', '--json'], { env })
    await until(() => world.sandbox.control.counters().requests > 3)

    await writeFile(file, 'key-2\n')
    keys.add('key-2')
    await worker.says('uses the new API key')
    keys.delete('key-1')
    const { code, stderr, stdout } = await exporting.ended
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ verdict: 'proven' })
    expect(front.used).toEqual(new Set(['key-1', 'key-2']))
    expect(worker.texts.stderr).not.toMatch(/key-[12]/)
  },
)
