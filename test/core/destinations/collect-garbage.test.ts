import { getHeapStatistics } from 'node:v8'
import { expect, onTestFinished, test, vi } from 'vitest'
import { collectGarbage } from '../../../core/destinations/duckdb/collect-garbage.ts'

test('what a read has left is given back to the system, at most every 30 s', () => {
  // Another test of this process may have published just now.
  vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000)
  onTestFinished(() => void vi.restoreAllMocks())
  const heapBytes = () => getHeapStatistics().total_heap_size
  const texts = () => Array.from({ length: 500_000 }, (_, at) => [`${at} of a page`])
  let page: unknown[] | undefined = texts()
  const filled = heapBytes()
  expect(page).toHaveLength(500_000)
  page = undefined
  collectGarbage()
  expect(filled - heapBytes(), 'bytes given back').toBeGreaterThan(20_000_000)

  page = texts()
  const again = heapBytes()
  page = undefined
  collectGarbage()
  expect(heapBytes()).toBeGreaterThanOrEqual(again)
})
