import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { asked, createWorld, local, startCommand, until, type World } from './world.ts'

const slowly = (on: string, ms: number) => ({ kind: 'latency', ms, on }) as const
const slow = {
  counts: { customers: 4000, subscriptions: 1000 },
  faults: [slowly('GET /customers/', 400), slowly('GET /subscriptions/', 3000)],
} as const

const exportLocally = (world: World, resource: string) =>
  startCommand(world, ['export', resource, '--local', '--json'], { env: local })

describe('two commands on one data folder', () => {
  test(
    'are not two workers: the second is refused, with the pid of the first',
    { tags: ['long'] },
    async () => {
      const world = await createWorld()
      const first = startCommand(world, ['worker'])
      await first.says('listening')
      for (const { words, env } of [
        { words: ['worker'], env: {} },
        { words: ['up'], env: local },
        { words: ['export', 'plans', '--local'], env: local },
      ]) {
        const { code, stderr } = await callCommand(world, words, { env })
        expect(code).toBe(2)
        expect(stderr).toMatch(
          new RegExp(`^error: [^\\n]*worker with pid ${first.child.pid}[^\\n]*\\n$`, 'm'),
        )
      }
      expect(first.child.exitCode).toBeNull()
    },
  )

  test('of the same export are one run', { tags: ['long'] }, async () => {
    // So slow that the first is still reading when the second comes, however long that takes to start.
    const world = await createWorld({ ...slow, faults: [slowly('GET /customers/', 5_000)] })
    const first = exportLocally(world, 'customers')
    await first.says('Run export-')
    // The first one's server and worker serve the second, too.
    const second = startCommand(world, ['export', 'customers', '--json'], { env: local })
    await second.says('Resumes the unfinished run')
    world.sandbox.control.setFaults({ faults: [] })
    const [one, other] = await Promise.all([first.ended, second.ended])
    expect(one).toMatchObject({ code: 0 })
    expect(other).toMatchObject({ code: 0, stdout: one.stdout })
  })

  test(
    'of two exports that have a list in common: the second is refused with one sentence that names the first',
    { tags: ['long'] },
    async () => {
      const world = await createWorld(slow)
      const first = exportLocally(world, 'customers')
      await first.says('Run export-')
      await until(() => asked(world) > 8)
      const both = ['export', 'customers', 'subscriptions']
      const { code, stderr } = await callCommand(world, both, { env: local })
      expect(code).toBe(2)
      expect(stderr).toMatch(
        /^error: .*The run export-customers-\S+ is already doing this \(export customers to csv\) and has not ended\. Wait for it, or stop it\.$/m,
      )
      expect(stderr.match(/already doing this/g)).toHaveLength(1)
      world.sandbox.control.setFaults({ faults: [] })
      expect(await first.ended).toMatchObject({ code: 0 })
    },
  )
})
