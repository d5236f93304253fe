import { expect, test } from 'vitest'
import { checkLimits, checkResolution, rowsOf } from '../../workflows/write-run/messages.ts'
import { countResolved } from '../../workflows/write-run/updates.ts'

const person = { by: 'Ana', why: 'looked' }

test.each([
  [{ row: 17, absent: true }, [17]],
  [{ row: 17, exists: 'ret_1' }, [17]],
  [{ rows: [17, 18], drop: true }, [17, 18]],
])('a resolution names one row or several: %j', (said, rows) => {
  checkResolution({ ...said, ...person })
  expect(rowsOf({ ...said, ...person } as Parameters<typeof rowsOf>[0])).toEqual(rows)
})

test.each([
  [{ absent: true }, /Give the row/],
  [{ row: 17, rows: [18], absent: true }, /Give the row/],
  [{ rows: [], drop: true }, /Give the row/],
  [{ rows: [1.5], drop: true }, /Give the row/],
  [{ rows: [17, 18], exists: 'ret_1' }, /each record has its own id/],
  [{ row: 17, exists: '4821 3' }, /4821 3 is not a valid id; ids consist of letters/],
  [{ rows: Array.from({ length: 1_001 }, (_, row) => row), drop: true }, /at most 1000 rows/],
])('a resolution without a meaning is refused with a sentence: %j', (said, message) => {
  expect(() => checkResolution({ ...said, ...person })).toThrow(message)
})

test('an update with a field that it does not have is refused, and names those that it has', () => {
  expect(() => checkLimits({ rate: 3 }, ['requestsPerSecond', 'concurrency'])).toThrow(
    'There is no field rate; the fields are requestsPerSecond, concurrency, by, why.',
  )
})

test('a refused update has a sentence and no stack', () => {
  const refusal = () => checkResolution({ ...person })
  expect(refusal).toThrow(expect.objectContaining({ stack: '' }))
})

test('each row of a resolution is counted', () => {
  const counts = { staged: 0, done: 5, rejected: 0, unknown: 0, parked: 3, skipped: 0, notTried: 0 }
  const parked = { counts, parkedRows: [3, 4, 9] }
  countResolved(parked, { rows: [3, 9], drop: true, ...person })
  expect(parked).toMatchObject({ counts: { parked: 1, skipped: 2 }, parkedRows: [4] })
})
