import { execFileSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { mayMount } from './full-disk.ts'
import { createWorld, local, startCommand } from './world.ts'

const words = ['export', 'customers', '--json']

describe('an export whose disk takes no more', () => {
  test.runIf(mayMount())(
    'ends at once where it is full or read-only, under --local, and continues when there is room',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { customers: 8000 } })
      // Temporal's database takes 5 MB of it.
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', world.dataDir])
      onTestFinished(() => void execFileSync('umount', ['-l', world.dataDir]))
      const remount = (options: string) => execFileSync('mount', ['-o', `remount,${options}`, world.dataDir])
      const command = () => startCommand(world, [...words, '--local'], { env: local }).ended
      const full = await command()
      // Temporal, whose database is there, may be the first to find no room: then it does not answer any more.
      expect(full).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /error: [^\n]*(the disk is full[^\n]*Fix this and run it again|Temporal does not answer any more)[^\n]*\n$/,
        ),
      })
      expect(full.ms).toBeLessThan(60_000)
      expect(await readdir(join(world.dataDir, 'parts'))).toHaveLength(1)

      remount('ro')
      const closed = await command()
      expect(closed).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^error: [^\n]*read-only[^\n]*\n$/),
      })

      remount('rw,size=64m')
      const whole = await command()
      expect(whole.code).toBe(0)
      expect(JSON.parse(whole.stdout)).toMatchObject({ exports: [{ verdict: 'proven', records: 8000 }] })
    },
  )
})
