import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld, startCommand } from '../export/world.ts'

test('a worker whose lock file is removed stops at once and says why', async () => {
  const world = await createWorld({ counts: { plans: 1 } })
  const worker = startCommand(world, ['worker'])
  await worker.says('Listening')
  const before = performance.now()
  await rm(join(world.dataDir, 'worker.lock'))
  const { code, stderr } = await worker.ended
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: The worker of \S+ stopped: its file worker\.lock was removed or replaced/m)
  expect(performance.now() - before).toBeLessThan(15_000)
})
