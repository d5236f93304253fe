import { describe, expect, test } from 'vitest'
import { toMarkdown } from '../../core/runs/view/markdown.ts'
import { toLiveExport } from '../../workflows/export-view.ts'
import { toImportText } from '../../workflows/write-run/text.ts'
import { toThroughput } from '../../workflows/run/throughput.ts'
import { toLiveView } from '../../workflows/write-run/view.ts'

const now = Date.parse('2026-11-21T20:00:00Z')

describe('the throughput of a run', () => {
  test('is that of its last segment, and tells when the run ends at that rate', () => {
    const throughput = toThroughput({ done: 285, left: 11_400, ms: 30_000, now })
    expect(throughput).toEqual({ perSecond: 9.5, endsAt: '2026-11-21T20:20:00.000Z' })
  })

  test.each([
    ['nothing was done', { done: 0, left: 10, ms: 1000 }],
    ['a person has put rows back', { done: -3, left: 10, ms: 1000 }],
    ['nothing is left', { done: 10, left: 0, ms: 1000 }],
    ['more came than was expected', { done: 10, left: -5, ms: 1000 }],
    ['no time has passed', { done: 10, left: 10, ms: 0 }],
  ])('is unknown if %s', (_, stretch) => {
    expect(toThroughput({ ...stretch, now })).toBeUndefined()
  })
})

test('the details of an import show its counts, its throughput and its end', () => {
  const counts = { staged: 11_400, done: 599, rejected: 1, unknown: 0, parked: 0, skipped: 0, notTried: 0 }
  const throughput = { perSecond: 9.5, endsAt: '2026-11-21T20:20:00.000Z' }
  const progress = { phase: 'sending', limits: {}, counts, throughput } as const
  const details = toMarkdown(toLiveView(progress, toImportText(progress)))
  expect(details).toContain('**9.5 rows a second**; at that rate until about 2026-11-21 20:20 UTC.')
  expect(details.replaceAll('\u00a0\u00a0', '').replaceAll('\u00a0', ' ')).toContain(
    '| | rows |\n| :--- | ---: |\n| done | 599 |\n| not sent yet | 11,400 |\n| rejected | 1 |\n\n',
  )
})

test('the details of an export show the throughput of each list while it is read', () => {
  const read = { resource: 'customers', state: 'reading' as const, records: 100, requests: 2, expected: 500 }
  const throughput = { perSecond: 812.3, endsAt: '2026-11-21T20:20:00.000Z' }
  const shown = '**812 customers a second**; at that rate until about 2026-11-21 20:20 UTC.'
  const details = (phase: 'running' | 'paused') =>
    toMarkdown(toLiveExport({ name: 'export', phase, resources: [{ ...read, throughput }] }))
  expect(details('running')).toContain(shown)
  expect(details('paused')).not.toContain(shown)
})
