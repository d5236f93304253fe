import { execFileSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { prepareWorkflowBundle } from '../../../worker/workflow-bundle.ts'
import { mayMount } from './full-disk.ts'
import { createWorld, local, startCommand, startTestWorker, workerListens } from './world.ts'

const words = ['export', 'customers', '--json']

interface Printed {
  exports: { verdict: string; records: number }[]
}

describe('an export whose disk takes no more', () => {
  test(
    'ends at once where a file may not grow, and the same command is proven once it may',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts: { customers: 6000 }, faults: [{ kind: 'latency', ms: 30 }] })
      await prepareWorkflowBundle()
      // In blocks of 1,024 bytes: two thirds of the customers, which are in one part.
      const through = ['bash', '-c', 'ulimit -f 1800; exec "$0" "$@"']
      const limited = startCommand(world, ['worker'], { through })
      await workerListens(world)
      // In one range, so that all rows are in one file.
      const whole = [...words, '--input', 'parallel=1']
      const failed = await callCommand(world, whole)
      expect(failed.code).toBe(1)
      expect(failed.stderr).toMatch(
        /error: [^\n]*the file would be larger than is allowed \(EFBIG\)[^\n]*\n$/,
      )
      // Tried again, it would go on for half an hour.
      expect(failed.ms).toBeLessThan(60_000)
      // On a busy machine the read closes several smaller files, and only the published one is too large.
      const left = await readdir(join(world.dataDir, 'exports'), { recursive: true })
      expect(
        left.filter((path) => !/^(customers|reports(\/export-customers-\w+\.(html|json))?)$/.test(path)),
      ).toEqual([])
      limited.child.kill('SIGTERM')
      await limited.ended

      world.sandbox.control.setFaults({ faults: [] })
      await startTestWorker(world)
      const { code, stdout, stderr } = await callCommand(world, whole)
      expect({ code, stderr }).toMatchObject({ code: 0 })
      const [published] = (JSON.parse(stdout) as Printed).exports
      expect(published).toMatchObject({ verdict: 'proven', records: 6000 })
    },
  )

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
      expect(full).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/error: [^\n]*the disk is full[^\n]*\n$/),
      })
      expect(full.ms).toBeLessThan(60_000)
      expect(JSON.parse(full.stdout)).toMatchObject({
        error: { message: expect.stringContaining('Fix this and run it again') },
      })
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
