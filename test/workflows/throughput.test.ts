import { describe, expect, test } from 'vitest'
import { describeResource } from '../../workflows/export-details.ts'
import { describeImport } from '../../workflows/import-details.ts'
import { toPace } from '../../workflows/run/throughput.ts'

const now = Date.parse('2026-11-21T20:00:00Z')

describe('the pace of a run', () => {
  test('is that of its last stretch, and tells when it ends if it goes on so', () => {
    const pace = toPace({ done: 285, left: 11_400, ms: 30_000, now })
    expect(pace).toEqual({ perSecond: 9.5, endsAt: '2026-11-21T20:20:00.000Z' })
  })

  test.each([
    ['nothing was done', { done: 0, left: 10, ms: 1000 }],
    ['a person has put rows back', { done: -3, left: 10, ms: 1000 }],
    ['nothing is left', { done: 10, left: 0, ms: 1000 }],
    ['more came than was expected', { done: 10, left: -5, ms: 1000 }],
    ['no time has passed', { done: 10, left: 10, ms: 0 }],
  ])('is not told where %s', (_, stretch) => {
    expect(toPace({ ...stretch, now })).toBeUndefined()
  })
})

test('the details of an import say how many rows are where, how fast it goes and until when', () => {
  const counts = { staged: 11_400, done: 599, rejected: 1, unknown: 0, parked: 0, skipped: 0, notTried: 0 }
  const pace = { perSecond: 9.5, endsAt: '2026-11-21T20:20:00.000Z' }
  const said = describeImport({ phase: 'sending', limits: {}, counts, pace })
  expect(said).toContain('**9.5 rows a second**; at that pace until about 2026-11-21 20:20 UTC.')
  expect(said.replaceAll('\u00a0', '')).toContain(
    '| | rows |\n| --- | ---: |\n| done | 599 |\n| not sent yet | 11400 |\n| rejected | 1 |\n\n',
  )
})

test('the details of a read say so too, while it reads', () => {
  const read = { resource: 'customers', records: 100, requests: 2, expected: 500 }
  const pace = { perSecond: 812.3, endsAt: '2026-11-21T20:20:00.000Z' }
  const says = '**812 records a second**; at that pace until about 2026-11-21 20:20 UTC.'
  expect(describeResource({ ...read, phase: 'reading', pace })).toContain(says)
  expect(describeResource({ ...read, phase: 'paused', pace })).not.toContain(says)
})
