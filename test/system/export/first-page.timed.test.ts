import { expect, test } from 'vitest'
import { createWorld, local, startCommand, until } from './world.ts'

test('a command with --local asks for its first page within 6 s of being typed', async () => {
  const world = await createWorld({ counts: { customers: 500 } })
  const typedAt = performance.now()
  const command = startCommand(world, ['export', 'customers', '--local', '--json'], { env: local })
  await until(() => world.sandbox.control.requests().some(({ url }) => url.startsWith('/customers/')))
  const seconds = (performance.now() - typedAt) / 1000
  console.log(`first page after ${seconds.toFixed(1)} s`)
  expect(seconds).toBeLessThan(6)
  expect((await command.ended).code).toBe(0)
})
