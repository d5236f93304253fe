import { expect, test } from 'vitest'
import { exportPath } from '../../../core/destinations/files/publish.ts'

const whole = {
  testMode: false,
  resource: 'customers',
  mode: 'full',
  filters: {},
  capped: false,
  forExcel: false,
} as const

test('the folders of a list sort by the start of their runs, whatever the runs are called', () => {
  const runs = [
    { run: 'export-all-f', begunAt: '2026-11-20T02:00:00.000Z' },
    { run: 'export-all-a', begunAt: '2026-11-21T02:00:00.250Z' },
    { run: 'latest', begunAt: '2026-11-21T00:00:01.000-03:00' },
    { run: '9', begunAt: '2026-12-01T02:00:00Z' },
  ]
  const paths = runs.map((run) => exportPath({ ...whole, ...run }))
  expect(paths).toEqual([
    'customers/2026-11-20T02-00-00Z-export-all-f',
    'customers/2026-11-21T02-00-00Z-export-all-a',
    'customers/2026-11-21T03-00-01Z-_latest',
    'customers/2026-12-01T02-00-00Z-9',
  ])
  expect(paths.toSorted()).toEqual(paths)
})
