import type { ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import { expect, onTestFinished, test } from 'vitest'
import { createBilling } from '../../../core/billing/client.ts'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
import { toListPage } from '../../../core/billing/reply.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { type Answer, json, quickBilling, startTinyService } from './tiny-service.ts'

async function listOf(answer: Answer, { pageSize = 100 } = {}) {
  const service = await startTinyService(answer)
  onTestFinished(() => service[Symbol.asyncDispose]())
  const settings = {
    workspace: 'acc_1',
    testMode: false,
    token: async () => 'secret',
    rate: { requestsPerSecond: 1e4 },
  }
  const billing = createBilling({ baseUrl: service.baseUrl, ...settings, readWaitMs: () => 0 })
  const list = { resource: listResources.customers, page: 1, pageSize }
  const reply = await billing.list(list).then(
    (page) => ({ records: page.records.length }),
    (error: Error) => error,
  )
  return { reply, requests: service.seen.length }
}

const MiB = 1024 * 1024
const page = (records: string) => `{"count":1,"next":null,"results":[${records}]}`

/** A list with the same record over and over, sent piece by piece: the service shares this process's memory. */
const repeated =
  (record: string, bytes: number, { gzip = false, status = 200 } = {}): Answer =>
  (response) => {
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(gzip && { 'content-encoding': 'gzip' }),
    })
    const piece = record.repeat(10_000)
    function* pieces() {
      yield '{"count":1,"next":null,"results":['
      for (let sent = 0; sent < bytes; sent += piece.length) yield piece
      yield '{}]}'
    }
    const steps = gzip
      ? [Readable.from(pieces()), createGzip(), response]
      : [Readable.from(pieces()), response]
    pipeline(steps as [Readable, ServerResponse], () => undefined)
  }

test.each([
  ['63 MiB of empty records', repeated('{},', 63 * MiB)],
  ['7 MiB of empty records', repeated('{},', 7 * MiB)],
  ['7 MiB of empty lists', repeated('[],', 7 * MiB)],
  ['7 MiB of numbers', repeated('1,', 7 * MiB)],
  ['63 MiB that came as a few KiB', repeated('{},', 63 * MiB, { gzip: true })],
])('a reply of %s is refused at once, in little memory', async (_, answer) => {
  const before = process.memoryUsage().heapUsed
  const { reply, requests } = await listOf(answer)
  expect(reply).toMatchObject({ name: 'UnexpectedReply', problem: 'tooLarge', retryable: false })
  expect(requests).toBe(1)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(64 * MiB)
})

test('an error of 7 MiB keeps its status, and does not count as an answer of the service', async () => {
  const { reply } = await listOf(repeated('{},', 7 * MiB, { status: 400 }))
  expect(reply).toMatchObject({ status: 400 })
  expect((reply as Error).message.length).toBeLessThan(10_000)
})

test('a page of 100 large records is read', async () => {
  const record = JSON.stringify({
    id: 'a',
    name: 'n'.repeat(20_000),
    lines: Array.from({ length: 2_000 }, () => ({ amount: 1 })),
  })
  expect((await listOf(json(200, page(Array(100).fill(record).join(','))))).reply).toEqual({ records: 100 })
})

test('text nested deeper than any stack is parsed, each number as it was written', () => {
  const depth = 200_000
  let value = parseLossless(`${'{"a":'.repeat(depth)}0.10${'}'.repeat(depth)}`)
  for (let at = 0; at < depth; at++) value = (value as { a: unknown }).a
  expect(JSON.stringify(value)).toBe('0.10')
})

test('a redirect shows its target, and nothing else of its contents', async () => {
  const location = `https://user:pass@elsewhere.example/secret/a@example.org/${'x'.repeat(9_000)}?next=secret`
  const { reply } = await listOf((response) => response.writeHead(302, { location }).end())
  expect((reply as Error).message).toContain('it points to https://elsewhere.example and is not followed')
  const local = await listOf((response) =>
    response.writeHead(302, { location: '/secret/a@example.org' }).end(),
  )
  expect((local.reply as Error).message).toContain('it points to another path and is not followed')
})

test.each(['9'.repeat(20), '9'.repeat(400)])('an Age of %s seconds is a time all the same', async (age) => {
  const page = toListPage(
    { method: 'GET', path: '/customers/', token: 'secret' },
    {
      status: 200,
      bytes: Buffer.from('{"results":[]}'),
      headers: { age, date: 'Sun, 22 Nov 2026 05:00:00 GMT' },
    },
  )
  expect(new Date(page.servedAt ?? Number.NaN).getUTCFullYear()).toBe(1958)
})

test.each(['-1', '2.5', '1e300', '"3"', 'null'])('a count of %s is none', (count) => {
  const bytes = Buffer.from(`{"count":${count},"next":null,"results":[]}`)
  const request = { method: 'GET', path: '/customers/', token: 'secret' } as const
  expect(toListPage(request, { status: 200, bytes, headers: {} }).count).toBeUndefined()
})

test('a document and a 404 carry the age that a cache gives them', async () => {
  const aged = { age: '60' }
  const service = await startTinyService(
    json(200, { id: 7 }, aged),
    json(404, { detail: 'Not found.' }, aged),
  )
  onTestFinished(() => service[Symbol.asyncDispose]())
  const billing = quickBilling({ baseUrl: service.baseUrl })
  expect(await billing.getDocument('creditnotes', '7')).toEqual({ record: { id: 7 }, ageMs: 60_000 })
  await expect(billing.getDocument('creditnotes', '7')).rejects.toMatchObject({
    name: 'NotFound',
    ageMs: 60_000,
  })
})
