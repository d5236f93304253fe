import { expect, it } from 'vitest'
import { ServiceFault } from '../../../core/billing/errors.ts'
import { toMessages } from '../../../core/billing/error-body.ts'

const messagesIn = (body: unknown) => toMessages(body, 'secret-token')

it('a hostile body becomes neither a long message nor an exhausted stack', () => {
  let deep: unknown = 'x'
  for (let depth = 0; depth < 100_000; depth++) deep = { a: deep }
  expect(messagesIn(deep)).toEqual([])
  expect(messagesIn(Array.from({ length: 5000 }, () => 'y'.repeat(5000))).join('').length).toBeLessThan(
    10_000,
  )
})

it('of a page made for browsers only its text is kept', () => {
  expect(messagesIn('<!DOCTYPE html><style>a{}</style><h1>502</h1>\n<p>Bad  Gateway</p>')).toEqual([
    '502 Bad Gateway',
  ])
})

it('a gateway’s page is quoted once, with its status once', () => {
  const title = '504 Gateway Time-out'
  const messages = messagesIn(`<html><head><title>${title}</title></head><h1>${title}</h1>nginx</html>`)
  expect(messages).toEqual(['504 Gateway Time-out nginx'])
  const { message } = new ServiceFault({ method: 'GET', path: '/plans/', status: 504, messages })
  expect(message).toContain('GET /plans/ (504 Gateway Time-out nginx);')
})

it('names of fields without bound and lists in lists make no long message, and exhaust no stack', () => {
  const long = 'n'.repeat(3_000_000)
  const path = Array.from({ length: 9 }, () => long)
  const nested = path.reduce<unknown>((inner, name) => ({ [name]: inner }), ['is required'])
  expect(messagesIn({ [long]: ['is required'] })).toEqual([`${'n'.repeat(100)}...: is required`])
  expect(messagesIn(nested).join('').length).toBeLessThan(2_000)
  let deep: unknown = 'x'
  for (let depth = 0; depth < 100_000; depth++) deep = [deep]
  expect(messagesIn(deep)).toEqual([])
  expect(messagesIn({ lines: [{}, { amount: [['is required']] }] })).toEqual(['lines.2.amount: is required'])
})

it.each([
  ['opening brackets', '<'],
  ['styles without an end', '<style'],
  ['scripts without an end', '<script>'],
])('a page of %s is read in a moment, for everything else waits in the meantime', (_, piece) => {
  const page = `<html>${piece.repeat((8 * 1024 * 1024) / piece.length)}`
  const before = process.threadCpuUsage().user
  messagesIn(page)
  expect(process.threadCpuUsage().user - before, 'microseconds').toBeLessThan(100_000)
})
