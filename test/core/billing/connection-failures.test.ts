import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { failure, quickBilling } from './tiny-service.ts'

async function portOf(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const pem = (name: string) =>
  readFileSync(new URL(`../../system/worker/localhost-${name}.pem`, import.meta.url))

const answering = (answer: string) =>
  portOf(createServer((socket) => socket.on('error', () => {}).once('data', () => socket.end(answer))))

const http = (status: string, body: string) =>
  `HTTP/1.1 ${status}\r\nContent-Type: text/html\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`

test.each<[string, () => Promise<string>, RegExp]>([
  [
    'a port where nothing listens',
    async () => 'http://127.0.0.1:1',
    /^no connection for GET \/plans\/: nothing listens there \(ECONNREFUSED 127\.0\.0\.1:1\); check the address and the network$/,
  ],
  [
    'https where http is spoken',
    async () => `https://${await answering(http('400 Bad Request', 'x'))}`,
    /^no connection for GET \/plans\/: what answers there does not speak TLS as https needs it, so perhaps its address begins with http:\/\/ \((EPROTO|ERR_SSL_\w+)\); check the address and the network$/,
  ],
  [
    'a certificate that is not trusted',
    async () => `https://${await portOf(createHttps({ key: pem('key'), cert: pem('cert') }))}`,
    /: this machine does not trust its certificate \(NODE_EXTRA_CA_CERTS adds an authority\) \([A-Z_]+\); check/,
  ],
  [
    'a name that does not exist',
    async () => 'http://no.invalid',
    /: (there is no host of that name|the name of the host could not be looked up) \((ENOTFOUND|EAI_AGAIN) no\.invalid\); check/,
  ],
  [
    'a server that closes the connection',
    async () => `http://${await answering('')}`,
    /^no complete reply to GET \/plans\/: the connection was closed \(ECONNRESET\); check the address and the network$/,
  ],
  [
    'a server of another kind',
    async () => `http://${await answering('SSH-2.0-OpenSSH\r\n')}`,
    /: what answers there does not speak HTTP \(HPE_\w+\); check the address/,
  ],
  [
    'another web server',
    async () => `http://${await answering(http('404 Not Found', 'nothing here'))}`,
    /^not found: GET \/plans\/ \(404.*\); the reply does not have the service’s format: a gateway sent it, or BILLING_BASE_URL is wrong$/,
  ],
])('%s is told in one sentence, in plain words and with the code', async (_, address, says) => {
  const billing = quickBilling({ baseUrl: await address() })
  const error: unknown = await failure(
    billing.list({ resource: listResources.plans, page: 1, pageSize: 1, tries: 1 }),
  )
  expect(error).toMatchObject({ message: expect.stringMatching(says) })
})
