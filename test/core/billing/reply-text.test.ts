import { gzipSync } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { type Answer, failure, quickBilling, startTinyService } from './tiny-service.ts'

const page = '{"count":1,"next":null,"results":[{"id":"a","name":"Muñoz"}]}'
const latin1 = Buffer.from(page, 'latin1')
const utf16be = Buffer.from(`\ufeff${page}`, 'utf16le').swap16()
/** Quotation marks as windows-1252 has them. */
const quoted = Buffer.from(page.replace('ñ', '\x93ñ\x94'), 'latin1')
const undefinedByte = Buffer.from(page.replace('ñ', '\x81ñ'), 'latin1')
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

test.each<[string, Buffer, string, string?]>([
  ['UTF-8 without a charset', Buffer.from(page), 'application/json'],
  ['UTF-8', Buffer.from(page), 'application/json; charset="UTF-8"'],
  ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${page}`), 'application/json'],
  ['UTF-8 to which a gateway added its default', Buffer.from(page), 'application/json; charset=iso-8859-1'],
  ['UTF-8 with an unknown charset', Buffer.from(page), 'application/json; charset=x-none'],
  ['ISO 8859-1', latin1, 'application/json; charset=iso-8859-1'],
  ['Windows-1252', quoted, 'application/json;charset=Windows-1252', 'Mu“ñ”oz'],
  ['UTF-16', Buffer.from(page, 'utf16le'), 'application/json; charset=utf-16'],
  ['UTF-16 with a byte order mark alone', utf16be, 'application/json'],
])('a reply in %s is read as it was meant', async (_, body, type, name = 'Muñoz') => {
  const { billing } = await serve(body, type, { gzip: type.includes('Windows') })
  expect((await billing.list(customers)).records).toEqual([{ id: 'a', name }])
})

const faults: [string, Buffer, string, string][] = [
  ['in ISO 8859-1 without a charset', latin1, 'application/json', 'names no charset'],
  ['in ISO 8859-1 that claims UTF-8', latin1, 'application/json; charset=utf-8', 'not valid utf-8'],
  ['in an unknown charset', latin1, 'application/json; charset=x-none', 'x-none is unknown'],
  ['with one wrong byte', oneWrongByte, 'application/json', 'not UTF-8'],
  [
    'with a byte that its charset lacks',
    undefinedByte,
    'application/json; charset=windows-1252',
    'not valid windows-1252',
  ],
  [
    'with quotation marks of Windows-1252 in another charset',
    quoted,
    'application/json; charset=iso-8859-15',
    'not valid iso-8859-15',
  ],
]

test.each(faults)(
  'a reply %s is refused at once, with its page and the charset',
  async (_, body, type, why) => {
    for (const gzip of [false, true]) {
      const { billing, service } = await serve(body, type, { gzip })
      const error = await failure(billing.list(customers))
      expect(error).toMatchObject({ name: 'UnexpectedReply', problem: 'notText', retryable: false })
      expect((error as Error).message).toContain(why)
      expect((error as Error).message).toMatch(/\(page 1\); the service must send UTF-8, or name its charset/)
      expect(service.seen).toHaveLength(1)
    }
  },
)

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

test('a refusal that the service wrote in the charset that it names keeps its message', async () => {
  const body = Buffer.from('{"detail":"Número inválido."}', 'latin1')
  const { billing } = await serve(body, 'application/json; charset=latin1', { status: 400 })
  expect(await failure(billing.createRetention({}))).toMatchObject({
    effect: 'refused',
    messages: ['Número inválido.'],
  })
})
