import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, local, startCommand, until } from '../export/world.ts'
import { addonsCsv, once, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }

test(
  'an import --local hears limits and approve from another terminal, and resolve --local after its end',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({
      counts,
      faults: [{ kind: 'reset', effect: 'none', on: 'POST /addons/', requests: [2, 4] }],
    })
    const file = join(world.dataDir, 'addons.csv')
    await writeFile(file, addonsCsv(6))
    const env = { ...local, BILLING_SETTLE_SECONDS: '0.1' }
    const command = (...words: string[]) => startCommand(world, words, { env })
    const call = (...words: string[]) => callCommand(world, words, { env })
    const importing = command('import', 'addons', file, '--local', '--wait-for-approval', '--json')
    await importing.says('Run import-addons-addons-')
    const run = /Run (\S+)/.exec(importing.texts.stderr)?.[1] ?? ''
    await until(async () => (await call('run', 'show', run)).stdout.includes('waiting for approval'))
    const limits = await call('run', 'limits', run, '--rate', '50', '--why', 'it is slow')
    expect(limits.stdout, limits.stderr).toContain('requestsPerSecond 50')
    expect((await call('run', 'approve', run, '--why', 'as agreed', '--by', 'Ana')).code).toBe(0)
    const { code, stdout } = await importing.ended
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ counts: { done: 4, parked: 2 } })
    const { parked } = (JSON.parse(stdout) as { rows: { parked: number[] } }).rows

    // Its server is gone with it.
    const person = ['--why', 'looked', '--by', 'Ana']
    const alone = await call('run', 'resolve', run, '--rows', String(parked[0]), '--absent', ...person)
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('npx connector up') })
    const up = command('up')
    await up.says('Ctrl-C stops')
    const resolve = async (row: number, ...how: string[]) => {
      const { code, stderr } = await call('run', 'resolve', run, '--rows', String(row), ...how, ...person)
      expect(code, stderr).toBe(0)
      return JSON.parse((await call('run', 'watch', run, '--json')).stdout) as object
    }
    expect(await resolve(parked[0] ?? 0, '--absent')).toMatchObject({ counts: { done: 5, parked: 1 } })
    expect(await resolve(parked[1] ?? 0, '--drop')).toMatchObject({
      counts: { done: 5, parked: 0, skipped: 1 },
    })
    up.child.kill('SIGINT')
    await up.ended
    const [dropped] = timesOf(world, 'addons', 6).flatMap((times, index) => (times === 1 ? [] : [index + 2]))
    expect(dropped).toBe(parked[1])
    expect(timesOf(world, 'addons', 6).filter((times) => times === 1)).toEqual(once(5))
  },
)
