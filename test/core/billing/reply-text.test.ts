import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { type Answer, failure, quickBilling, startTinyService } from './tiny-service.ts'

const page = '{"count":1,"next":null,"results":[{"id":"a","name":"Muñoz"}]}'
const latin1 = Buffer.from(page, 'latin1')
const utf16be = Buffer.from(`\ufeff${page}`, 'utf16le').swap16()
/** The last letter of a text, after the UTF-8 of all others. */
const oneWrongByte = Buffer.concat([Buffer.from(page.slice(0, -4)), Buffer.from([0xf1]), Buffer.from('"}]}')])

async function serve(body: Buffer, type: string, { status = 200, gzip = false } = {}) {
  const answer: Answer = (response) => {
    response.writeHead(status, { 'content-type': type, ...(gzip && { 'content-encoding': 'gzip' }) })
    response.end(gzip ? gzipSync(body) : body)
  }
  const service = await startTinyService(answer)
  onTestFinished(() => service[Symbol.asyncDispose]())
  return { billing: quickBilling({ baseUrl: service.baseUrl }), service }
}

const customers = { resource: listResources.customers, page: 1, pageSize: 100 }

test.each<[string, Buffer, string]>([
  ['UTF-8 without a charset', Buffer.from(page), 'application/json'],
  ['UTF-8', Buffer.from(page), 'application/json; charset="UTF-8"'],
  ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${page}`), 'application/json'],
  ['UTF-8 to which a gateway added its default', Buffer.from(page), 'application/json; charset=iso-8859-1'],
  ['UTF-8 with an unknown charset', Buffer.from(page), 'application/json; charset=x-none'],
])('a reply in %s is read as it was meant', async (_, body, type) => {
  for (const gzip of [false, true]) {
    const { billing } = await serve(body, type, { gzip })
    expect((await billing.list(customers)).records).toEqual([{ id: 'a', name: 'Muñoz' }])
  }
})

const faults: [string, Buffer, string][] = [
  ['in ISO 8859-1 without a charset', latin1, 'application/json'],
  ['in ISO 8859-1 that says so', latin1, 'application/json; charset=iso-8859-1'],
  ['in UTF-16', Buffer.from(page, 'utf16le'), 'application/json; charset=utf-16'],
  ['in UTF-16 with a byte order mark', utf16be, 'application/json'],
  ['with one wrong byte', oneWrongByte, 'application/json'],
]

test.each(faults)('a reply %s is refused at once, with its page', async (_, body, type) => {
  for (const gzip of [false, true]) {
    const { billing, service } = await serve(body, type, { gzip })
    const error = await failure(billing.list(customers))
    expect(error).toMatchObject({ name: 'UnexpectedReply', problem: 'notText', retryable: false })
    expect((error as Error).message).toMatch(/its text is not UTF-8 \(page 1\); the service must send UTF-8$/)
    expect(service.seen).toHaveLength(1)
  }
})

test.each(faults)('a write that is answered %s is unknown, never done or refused', async (_, body, type) => {
  for (const status of [200, 400]) {
    const { billing } = await serve(body, type, { status })
    expect(await failure(billing.createRetention({}))).toMatchObject({ effect: 'unknown' })
    expect(await failure(billing.deleteOrder('1'))).toMatchObject({ effect: 'unknown' })
  }
})

test('a page of a gateway in another encoding, and a reply that breaks off inside a letter, are tried again', async () => {
  const html = await serve(Buffer.from('<html>Página</html>', 'latin1'), 'text/html')
  expect(await failure(html.billing.list(customers))).toMatchObject({ problem: 'notJson', retryable: true })
  const cut = await serve(Buffer.from(page).subarray(0, -7), 'application/json')
  expect(await failure(cut.billing.list(customers))).toMatchObject({ name: 'LostReply', retryable: true })
})
