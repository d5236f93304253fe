import { describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, local, startCommand, type World } from './world.ts'

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
    const faults = [{ kind: 'latency', ms: 5_000, on: 'GET /customers/' }] as const
    const world = await createWorld({ counts: { customers: 4_000 }, faults })
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
})
