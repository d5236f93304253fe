import { describe, expect, onTestFinished, test } from 'vitest'
import { retryAfterMs } from '../../../core/billing/reply.ts'
import { listResources } from '../../../core/billing/resources/lists.ts'
import { TroubleWatch } from '../../../core/billing/trouble-watch.ts'
import { describeTrouble } from '../../../core/runs/view/trouble.ts'
import {
  type Answer,
  cutOff,
  failure,
  html,
  json,
  page,
  quickBilling,
  silent,
  startTinyService,
} from './tiny-service.ts'

const plans = { resource: listResources.plans, page: 1, pageSize: 1 }

async function watched(settings: Partial<Parameters<typeof quickBilling>[0]>, ...answers: Answer[]) {
  const [first = page(), ...others] = answers
  const service = await startTinyService(first, ...others)
  onTestFinished(() => service[Symbol.asyncDispose]())
  const watch = new TroubleWatch()
  return { watch, billing: quickBilling({ baseUrl: service.baseUrl, ...settings }).watched(watch) }
}

test.each<[string, Parameters<typeof watched>, RegExp]>([
  ['503', [{}, json(503, { detail: 'x' })], /^The service answers 503 since .* UTC, attempt 3\.$/],
  ['a page of a gateway', [{}, html(502)], /answers 502 since/],
  ['429 without a time', [{}, json(429, { detail: 'x' })], /answers 429 since/],
  ['200 with a page', [{}, html(200)], /answers 200 with a page that is not JSON since/],
  [
    'the old reply of a cache',
    [{}, json(200, { count: 0, results: [], next: null }, { age: '99' })],
    /answers through a cache with old replies since/,
  ],
  ['404 with a page', [{}, html(404)], /answers 404 with a page that is not its own since/],
  ['401', [{}, json(401, { detail: 'x' })], /refuses the token since/],
  ['a reply that breaks off', [{}, cutOff], /gives no complete answer( \([A-Z_]+\))? since/],
  ['silence', [{ timeoutSeconds: 1 }, silent], /gives no complete answer \(ETIMEDOUT\) since/],
  ['a closed port', [{ baseUrl: 'http://127.0.0.1:1' }], /can't be reached \(ECONNREFUSED\)/],
])('a step whose requests meet %s says so, until one is answered', async (_, how, says) => {
  const { watch, billing } = await watched(...how)
  for (let tries = 0; tries < 2; tries += 1) await failure(billing.list({ ...plans, tries: 1, fresh: true }))
  const { trouble } = watch
  expect(describeTrouble(trouble!)).toMatch(says)
  expect(trouble).toMatchObject({ failures: 2 })
  // The next attempt of the step continues to count.
  expect(new TroubleWatch(trouble).trouble).toEqual(trouble)
  watch.answered()
  expect(watch.trouble).toBeUndefined()
})

test('an answer of the service, also a refusal, ends the trouble', async () => {
  const refusal = json(404, { detail: 'Not found.' })
  const { watch, billing } = await watched({}, json(503, {}), page(), json(503, {}), refusal)
  await billing.list(plans)
  expect(watch.trouble).toBeUndefined()
  await failure(billing.getDocument('creditnotes', '1'))
  expect(watch.trouble).toBeUndefined()
})

test.each([
  ['seconds', '7200', 2, true],
  ['a date', new Date(Date.now() + 7_200_000).toUTCString(), 2, true],
  ['more than an hour', '10800', 3, true],
  ['less', '1800', 0.5, false],
])('a pause of %s is told to every step that waits, and no other', async (_, retryAfter, hours, isSooner) => {
  const { billing, watch } = await watched({}, json(503, {}, { 'retry-after': retryAfter }))
  const stop = new AbortController()
  const other = new TroubleWatch()
  const idle = new TroubleWatch()
  billing.watched(idle)
  const reading = billing.list({ ...plans, signal: stop.signal }).catch(() => undefined)
  await expect.poll(() => watch.trouble?.pause).toBeDefined()
  const writing = billing
    .watched(other)
    .createAddon({}, { signal: stop.signal })
    .catch(() => undefined)
  await expect.poll(() => other.trouble).toBeDefined()
  expect(idle.trouble).toBeUndefined()
  for (const { trouble } of [watch, other]) {
    const { asked = 0, until = 0 } = trouble?.pause ?? {}
    expect(Math.abs(asked - Date.now() - hours * 3_600_000)).toBeLessThan(5_000)
    expect(Math.abs(until - Date.now() - Math.min(1, hours) * 3_600_000)).toBeLessThan(5_000)
    expect(describeTrouble(trouble!)).toMatch(
      isSooner ? /^The service asks for a pause until .*; the connector asks again at / : /until [^;]*\.$/,
    )
  }
  stop.abort()
  await Promise.all([reading, writing])
  // It had no answer of its own, and waits no longer.
  expect(other.trouble).toBeUndefined()
})

test('a command does not wait for a long pause: it says until when', async () => {
  const { billing } = await watched({ mostPauseMs: 10_000 }, json(429, {}, { 'retry-after': '7200' }))
  expect(await failure(billing.list(plans))).toMatchObject({
    name: 'PauseAsked',
    message: expect.stringMatching(/^the service asks for a pause until \d{4}-.* UTC: GET \/plans\/ \(429\)/),
  })
})

describe('Retry-After', () => {
  const date = 'Wed, 25 Nov 2026 12:00:00 GMT'
  test.each<[string, number | undefined]>([
    ['0', 0],
    ['7', 7_000],
    [' 7 ', 7_000],
    ['1.5', 1_500],
    ['Wed, 25 Nov 2026 12:00:30 GMT', 30_000],
    ['Wednesday, 25-Nov-26 12:00:30 GMT', 30_000],
    ['2026-11-25T12:00:30Z', 30_000],
    ['Wed, 25 Nov 2026 11:00:00 GMT', 0],
    ['', undefined],
    ['soon', undefined],
    ['Infinity', undefined],
  ])('%j is a wait of %s ms', (text, ms) => {
    expect(retryAfterMs({ headers: { 'retry-after': text, date } })).toBe(ms)
  })

  test('that comes twice counts once, and an endless one is a number', () => {
    expect(retryAfterMs({ headers: { 'retry-after': ['3', '9'], date } })).toBe(3_000)
    expect(retryAfterMs({ headers: { 'retry-after': '9'.repeat(30), date } })).toBeGreaterThan(1e20)
  })
})
