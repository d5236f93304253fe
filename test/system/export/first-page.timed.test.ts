import { expect, test } from 'vitest'
import { createWorld, local, startCommand, until } from './world.ts'

/** In seconds: on an idle machine 1.5 and 3; the machine of a test has other things to do. */
const most = { firstPage: 6, end: 15 }

test(
  'a command with --local asks for its first page within 6 s of being typed, and ends a list of 5,000 within 15 s',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 5_000 } })
    const typedAt = performance.now()
    const seconds = () => (performance.now() - typedAt) / 1000
    const command = startCommand(world, ['export', 'customers', '--local', '--json'], { env: local })
    await until(() => world.sandbox.control.requests().some(({ url }) => url.startsWith('/customers/')))
    const firstPage = seconds()
    expect((await command.ended).code).toBe(0)
    const end = seconds()
    console.log(`first page after ${firstPage.toFixed(1)} s, end after ${end.toFixed(1)} s`)
    expect(firstPage).toBeLessThan(most.firstPage)
    expect(end).toBeLessThan(most.end)
  },
)
