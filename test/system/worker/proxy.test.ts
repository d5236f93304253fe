/** Proxies and extra certificates come from the environment, so each client here is a process of its own. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, request, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { connect, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createWorld, startCommand } from '../export/world.ts'

const client = `
import { createBilling } from './core/billing/client.ts'
import { plans } from './core/billing/resources/catalog.ts'
const billing = createBilling({
  baseUrl: process.env.BASE_URL, workspace: 'acc_1', testMode: false, token: async () => 'secret-token', readWaitMs: () => 0,
  rate: { requestsPerSecond: Infinity },
})
const listed = await (process.env.WRITE ? billing.createAddon({}) : billing.list({ resource: plans, page: 1, pageSize: 1 })).catch((error) => error)
console.log(JSON.stringify(listed instanceof Error ? { name: listed.name, message: listed.message, effect: listed.effect } : listed.records))
`

// Self-signed for localhost, 127.0.0.1 and 0.0.0.0, valid until 2120; nothing but these tests trusts it.
const certificate = join(import.meta.dirname, 'localhost-cert.pem')
const key = join(import.meta.dirname, 'localhost-key.pem')

const listen = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

describe('the environment', () => {
  const servers: Server[] = []
  /** What the proxy was asked, in order. */
  const proxied: string[] = []
  /** This machine, by an address that is not the loopback's: that one is never reached through a proxy. */
  const host = '0.0.0.0'
  let ports: { plain: number; secure: number; proxy: number; refusing: number }

  beforeAll(async () => {
    const tls = { key: readFileSync(key), cert: readFileSync(certificate) }
    const plain = createHttpServer((_request, response) => response.end('{"results":["plain"]}'))
    const secure = createHttpsServer(tls, (_request, response) => response.end('{"results":["secure"]}'))
    const proxy = createHttpServer((incoming, outgoing) => {
      proxied.push(`${incoming.method} ${incoming.url}`)
      const forward = request(incoming.url ?? '', { method: incoming.method }, (reply) =>
        reply.pipe(outgoing),
      )
      incoming.pipe(forward)
    })
    proxy.on('connect', (incoming, socket) => {
      proxied.push(`CONNECT ${incoming.url} ${incoming.headers.authorization ?? 'without a token'}`)
      const tunnel = connect(Number(incoming.url?.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
        tunnel.pipe(socket).pipe(tunnel)
      })
      tunnel.on('error', () => socket.destroy())
      socket.on('error', () => tunnel.destroy())
    })
    const refusing = createHttpServer()
    refusing.on('connect', (_incoming, socket) =>
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'),
    )
    servers.push(plain, secure, proxy, refusing)
    ports = {
      plain: await listen(plain),
      secure: await listen(secure),
      proxy: await listen(proxy),
      refusing: await listen(refusing),
    }
  })

  afterAll(() => {
    for (const server of servers) server.close()
  })

  beforeEach(() => {
    proxied.length = 0
  })

  async function ask(env: Record<string, string>): Promise<unknown> {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--eval', client],
      {
        cwd: join(import.meta.dirname, '../../..'),
        env: {
          PATH: process.env['PATH'],
          NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
          ...env,
        },
      },
    )
    return JSON.parse(stdout)
  }

  it('HTTP_PROXY carries plain requests', async () => {
    const baseUrl = `http://${host}:${ports.plain}`
    expect(await ask({ BASE_URL: baseUrl, HTTP_PROXY: `http://127.0.0.1:${ports.proxy}` })).toEqual(['plain'])
    expect(proxied).toEqual([`GET ${baseUrl}/plans/?page=1&page_size=1`])
  })

  it('HTTPS_PROXY carries a tunnel in which NODE_EXTRA_CA_CERTS is trusted and the token stays', async () => {
    const env = {
      BASE_URL: `https://${host}:${ports.secure}`,
      HTTPS_PROXY: `http://127.0.0.1:${ports.proxy}`,
    }
    expect(await ask({ ...env, NODE_EXTRA_CA_CERTS: certificate })).toEqual(['secure'])
    expect(proxied).toEqual([`CONNECT ${host}:${ports.secure} without a token`])
  })

  it('NO_PROXY goes past the proxy', async () => {
    const env = {
      BASE_URL: `https://${host}:${ports.secure}`,
      NO_PROXY: host,
      NODE_EXTRA_CA_CERTS: certificate,
    }
    expect(await ask({ ...env, HTTPS_PROXY: `http://127.0.0.1:${ports.proxy}` })).toEqual(['secure'])
    expect(proxied).toEqual([])
  })

  it.each(['127.0.0.1', 'localhost', 'LOCALHOST'])(
    'no proxy gets the token of a request to %s',
    async (name) => {
      const proxy = `http://127.0.0.1:${ports.proxy}`
      const through = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, http_proxy: proxy, https_proxy: proxy }
      expect(await ask({ ...through, BASE_URL: `http://${name}:${ports.plain}` })).toEqual(['plain'])
      expect(proxied).toEqual([])
    },
  )

  it('no proxy gets what a command tells a Temporal server on this machine', async () => {
    const world = await createWorld({ counts: { plans: 1 } })
    const proxy = `http://127.0.0.1:${ports.proxy}`
    const env = { grpc_proxy: proxy, https_proxy: proxy, http_proxy: proxy }
    expect(await startCommand(world, ['run', 'list'], { env }).ended).toMatchObject({ code: 0 })
    expect(proxied).toEqual([])
  })

  it('a certificate that nobody vouches for ends a write before it is sent, with and without a proxy', async () => {
    const env = { BASE_URL: `https://${host}:${ports.secure}`, WRITE: '1' }
    const unreachable = {
      name: 'Unreachable',
      effect: 'none',
      message: expect.stringContaining('does not trust its certificate'),
    }
    expect(await ask(env)).toEqual(unreachable)
    expect(await ask({ ...env, HTTPS_PROXY: `http://127.0.0.1:${ports.proxy}` })).toEqual(unreachable)
  })

  it('a proxy that refuses ends a write before it is sent', async () => {
    const env = { BASE_URL: `https://${host}:${ports.secure}`, WRITE: '1' }
    const answer = await ask({ ...env, HTTPS_PROXY: `http://127.0.0.1:${ports.refusing}` })
    expect(answer).toMatchObject({ name: 'Unreachable', effect: 'none' })
  })
})
