import { expect, test } from 'vitest'
import type { RunControl } from '../../workflows/run/control.ts'
import { readRanges } from '../../workflows/read-list.ts'

const control: RunControl = {
  paused: false,
  stopping: false,
  interrupt: () => undefined,
  mayContinue: () => Promise.resolve(),
  untilInterrupted: (work) => work(),
  unlessStopped: (work) => work(),
  forPart: () => control,
}

/** The segments that a read leaves in its history if each of its ranges takes so long. */
async function segmentsOf({ ranges, secondsEach }: { ranges: number; secondsEach: number }) {
  const read = new Map<number, number>()
  let segments = 0
  await readRanges({
    open: {
      ranges,
      records: 0,
      requests: 0,
      left: Array.from({ length: ranges }, (_, range) => ({ range, records: 0, requests: 0 })),
    },
    reading: [],
    parallel: 16,
    control,
    readRange({ range, seconds }) {
      segments += 1
      const now = (read.get(range) ?? 0) + seconds
      read.set(range, now)
      const counts = { records: now, requests: now }
      return Promise.resolve(now < secondsEach ? counts : { ...counts, ended: 'whole' })
    },
    onProgress: () => undefined,
  })
  return segments
}

test('ranges that take some minutes each leave few more segments than there are ranges', async () => {
  expect(await segmentsOf({ ranges: 64, secondsEach: 180 })).toBeLessThanOrEqual(64 + 3)
})

test('progress of a list in ranges shows early, and a range that takes an hour is not one segment', async () => {
  expect(await segmentsOf({ ranges: 1, secondsEach: 3600 })).toBe(4 + 5)
})
