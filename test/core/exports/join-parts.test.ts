import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hasEnded, latestCheckpoint, nameOf, saveCheckpoint } from '../../../core/exports/parts/checkpoint.ts'
import { joinParts } from '../../../core/exports/parts/ranges.ts'
import { rangeFolder } from '../../../core/exports/parts/read-plan.ts'
import { type RangePlan, startRange } from '../../../core/reading/ranges.ts'
import { type RangeState, startState } from '../../../core/reading/range-state.ts'
import type { Drift } from '../../../core/tables/drift.ts'
import { newMachine } from './machine.ts'

const root = startState({ now: () => 1, readLagMs: 0 })
const list: RangePlan = { root, ranges: [{ range: { downTo: 10 } }, { range: { upTo: 10 } }] }

/** The parts of a list in two ranges. */
async function startRead() {
  const { shared, folder } = await newMachine()
  /** Leaves the last checkpoint of a range, with one part. */
  const leave = async (range: number, drift: Partial<Drift>, phase: RangeState['phase'] = 'ended') => {
    const own = rangeFolder(folder, range)
    const attempt = `00001-aaaaaaa${range}`
    const path = join(own, `customers.${attempt}.00001.part`)
    const state = startRange(list, list.ranges[range]!)
    const checkpoint = {
      name: nameOf({ attempt, saves: 1, isLast: phase !== 'chain' }),
      parts: [{ table: 'customers', path, bytes: 1, rows: 1, longest: 1, sha256: '' }],
      drift: { misfits: {}, unknownFields: {}, absent: {}, ...drift },
      totals: { columns: { 'customers.aggregations_sales': { sum: '0.10', empty: range } } },
      read: { ...state, phase, counts: { ...state.counts, records: 1 } },
      savedAt: `2026-11-20T00:00:0${range}Z`,
    }
    await saveCheckpoint({ shared, folder: own, checkpoint })
    return path
  }
  const planned = { tables: [], list }
  const toIdOutcome = () => {
    throw new Error('a list has no ids')
  }
  return { shared, folder, leave, join: () => joinParts({ shared, folder, planned, toIdOutcome }) }
}

test('the drift, the totals, the rows and the counts of all ranges are those of the read', async () => {
  const { shared, folder, leave, ...read } = await startRead()
  const newer = await leave(0, {
    misfits: { 'customers.name': { count: 2, example: 'a list' } },
    unknownFields: { 'customers.nickname': 3 },
    absent: { customers: ['phone', 'website'] },
  })
  expect(await read.join(), 'a range is left').toBeUndefined()
  const older = await leave(1, {
    misfits: { 'customers.name': { count: 5, example: 'a number' } },
    unknownFields: { 'customers.nickname': 1, 'customers.age': 1 },
    absent: { customers: ['website', 'zip_code'] },
  })
  const joined = await read.join()
  expect(joined).toMatchObject({
    drift: {
      misfits: { 'customers.name': { count: 7, example: 'a list' } },
      unknownFields: { 'customers.nickname': 4, 'customers.age': 1 },
      // What one range has is not absent.
      absent: { customers: ['website'] },
    },
    totals: { columns: { 'customers.aggregations_sales': { sum: '0.20', empty: 1 } } },
    read: { phase: 'ended', counts: { records: 2 } },
    savedAt: '2026-11-20T00:00:01Z',
  })
  expect(joined?.parts.map(({ path }) => path)).toEqual([newer, older])
  // Hidden records are still to be looked for.
  expect([hasEnded(joined!), joined?.outcome]).toEqual([false, undefined])
  expect(await latestCheckpoint({ shared, folder })).toEqual(joined)
})

test('a range that broke ends the others, and their parts are kept', async () => {
  const { leave, ...read } = await startRead()
  const newer = await leave(0, { unknownFields: { 'customers.age': 1 } }, 'chain')
  const older = await leave(1, { unknownFields: { 'customers.age': 2 } }, 'pages')
  const joined = await read.join()
  expect(joined).toMatchObject({
    drift: { unknownFields: { 'customers.age': 3 } },
    read: { phase: 'pages' },
  })
  expect(joined?.parts.map(({ path }) => path)).toEqual([newer, older])
})
