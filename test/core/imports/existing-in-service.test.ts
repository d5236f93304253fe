import { describe, expect, test } from 'vitest'
import { findExisting } from '../../../core/imports/staging/existing-in-service.ts'
import { retentionKey } from '../../../core/changes/kinds/create-retention.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'

type Known = Record<string, unknown> & { id: number }

/** Of 1,000 retentions three are in the file, and one of the file is nowhere. */
async function look(faults: Fault[] = []) {
  const sandbox = await startSandbox({ counts: { retentions: 1_000 }, faults })
  const texts = [...sandbox.control.records({ resource: 'retentions' })]
  const known = [3, 500, 900].map((at) => JSON.parse(texts[at] ?? '') as Known)
  const rows = [...known, { supplier: 'sup_x', document: 7, number: 1 }]
  const lookups = new Set(rows.map(retentionKey))
  const found = await findExisting({
    billing: clientOf(sandbox),
    lookups,
    testMode: false,
    readLagMs: 1_000,
    concurrency: 2,
    signal: new AbortController().signal,
  })
  const there = new Map(known.map((record) => [retentionKey(record), [String(record.id)]]))
  return { sandbox, found, there }
}

describe('what the service has already', () => {
  test('is asked for row by row where that is less than the list', async () => {
    const { sandbox, found, there } = await look()
    expect(found).toEqual({ ids: there, reasons: [] })
    expect(sandbox.control.counters().requests).toBe(5)
  })

  test('is read from the list where the service ignores the filters, so that none of it is made twice', async () => {
    const { found, there } = await look([{ kind: 'ignoreFilters', on: 'GET /retentions/' }])
    expect(found).toEqual({ ids: there, reasons: [] })
  })
})
