import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sendWithinMs } from '../../../core/billing/transport.ts'
import { runProgram } from '../command-line/run-program.ts'

const worker = join(import.meta.dirname, '../worker')
const certificate = join(worker, 'localhost-cert.pem')
const tls = { key: readFileSync(join(worker, 'localhost-key.pem')), cert: readFileSync(certificate) }

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A service that notes the length of each whole body that arrives. */
async function startService(secure: boolean) {
  const arrived: number[] = []
  const answer: RequestListener = (request, response) =>
    void text(request).then((body) => {
      arrived.push(body.length)
      response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"1"}')
    })
  const port = await listen(secure ? createHttpsServer(tls, answer) : createHttpServer(answer))
  return { arrived, port }
}

async function startProxy() {
  const proxy = createHttpServer()
  proxy.on('connect', (incoming, socket) => {
    const tunnel = connect(Number(incoming.url?.split(':')[1]), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      tunnel.pipe(socket).pipe(tunnel)
    })
    tunnel.on('error', () => socket.destroy())
    socket.on('error', () => tunnel.destroy())
  })
  return await listen(proxy)
}

/** Plain, over TLS, and over TLS through a proxy: at once, because a test of them waits for most of its time. */
const eachWay = (check: (how: { secure: boolean; proxied: boolean }) => Promise<void>) => async () => {
  await Promise.all([
    check({ secure: false, proxied: false }),
    check({ secure: true, proxied: false }),
    check({ secure: true, proxied: true }),
  ])
}

/** Runs the client until it has stopped itself. */
async function startFrozen({ secure, proxied, when }: { secure: boolean; proxied: boolean; when: string }) {
  const { arrived, port } = await startService(secure)
  // This machine by an address that is not the loopback's, which no proxy is used for.
  const baseUrl = `${secure ? 'https' : 'http'}://${proxied ? '0.0.0.0' : '127.0.0.1'}:${port}`
  const client = runProgram({
    program: 'test/system/changes/probes/freezing-client.ts',
    words: [baseUrl, when],
    env: {
      NODE_EXTRA_CA_CERTS: certificate,
      ...(proxied && { HTTPS_PROXY: `http://127.0.0.1:${await startProxy()}` }),
    },
  })
  await client.says('freezing')
  while (stateOf(client.child.pid ?? 0) !== 'T') await wait(10)
  return { client, arrived }
}

/** `T` for a process that has been stopped. */
function stateOf(pid: number): string | undefined {
  return /^\d+ \(.*\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]
}

describe.skipIf(process.platform !== 'linux')('a process that is frozen around a claim', () => {
  test(
    'sends nothing when it wakes two seconds after the claim',
    eachWay(async (how) => {
      const { client, arrived } = await startFrozen({ ...how, when: 'claim' })
      await wait(sendWithinMs + 200)
      expect(arrived).toHaveLength(1)
      client.child.kill('SIGCONT')
      expect((await client.ended).stdout).toMatch(/SentTooLate: .*was not sent: claiming it took \d{4,} ms/)
      expect(arrived).toHaveLength(1)
    }),
  )

  test(
    'has sent the whole request where the turn of its claim had ended',
    eachWay(async (how) => {
      const { client, arrived } = await startFrozen({ ...how, when: 'turn' })
      while (arrived.length < 2) await wait(10)
      expect(stateOf(client.child.pid ?? 0)).toBe('T')
      expect(arrived[1]).toBeGreaterThan(50_000)
      client.child.kill('SIGCONT')
      expect((await client.ended).stdout).toContain('sent\n')
    }),
  )
})
