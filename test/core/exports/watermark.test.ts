import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { toPrivacyMark } from '../../../core/exports/privacy-fingerprint.ts'
import { moveWatermark } from '../../../core/exports/watermark.ts'
import { openState } from '../../../core/state/open.ts'
import { createPlan } from '../../system/export/plan.ts'

const proven = {
  verdict: 'proven',
  clock: 'service',
  completeThrough: '2026-11-20T00:00:00Z',
  newestUpdated: '2026-11-20T00:00:00Z',
  hiddenFound: false,
} as const

test('a worker that publishes values hashed with another key moves no watermark', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'watermark-'))
  const state = await openState({ folder })
  onTestFinished(async () => {
    await state.close()
    await rm(folder, { recursive: true })
  })
  const plan = createPlan({ hash: ['customers.tax_id'] })
  const publish = (readWith: string) =>
    moveWatermark({
      deps: { state, hashKey: 'mine', destinations: new Map() },
      plan,
      resource: 'customers',
      destination: 'csv',
      read: proven,
      hashedWith: toPrivacyMark({ plan, hashKey: readWith })?.key,
    })
  await publish('theirs')
  expect(await state.watermarks.all()).toEqual([])
  await publish('mine')
  expect(await state.watermarks.all()).toHaveLength(1)
})
