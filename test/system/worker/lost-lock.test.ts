import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { asked, createWorld, local, startCommand, until } from '../export/world.ts'

test.each([
  ['a worker', ['worker'], {}],
  ['a command with --local', ['export', 'plans', '--local'], local],
])('%s whose lock file is removed stops at once and says why', { tags: ['long'] }, async (_, words, env) => {
  const world = await createWorld({
    counts: { customers: 1, subscriptions: 0, plans: 3000, retentions: 0, orders: 0 },
    faults: [{ kind: 'latency', ms: 200, on: 'GET /plans/' }],
  })
  const command = startCommand(world, words, { env })
  await (words[0] === 'worker' ? command.says('listening') : until(() => asked(world) > 5))
  const before = performance.now()
  await rm(join(world.dataDir, 'worker.lock'))
  const { code, stderr } = await command.ended
  expect(code).toBe(1)
  expect(stderr.match(/^error: .*$/gm)).toEqual([
    expect.stringMatching(/^error: The worker of \S+ stopped: its file worker\.lock was removed or replaced/),
  ])
  expect(performance.now() - before).toBeLessThan(15_000)
})
