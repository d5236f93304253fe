import { readdir, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld, startTestWorker } from '../export/world.ts'
import { callCommand } from './call-command.ts'

test('compares two exports of a sandbox that changed in between, by their folders and by their runs', async () => {
  const world = await createWorld({
    counts: { plans: 60 },
    drift: { plans: { perRequest: { updates: 2, inserts: 1, deletes: 1 } } },
  })
  await startTestWorker(world)
  const runs: string[] = []
  for (let time = 0; time < 2; time++) {
    const { stdout } = await callCommand(world, ['export', 'plans', '--json'])
    runs.push((JSON.parse(stdout) as { run: string }).run)
  }
  const folder = join(world.dataDir, 'exports', 'plans')
  const [older = '', newer = ''] = (await readdir(folder))
    .filter((name) => name.includes('-export-'))
    .toSorted()
  const out = join(world.dataDir, 'changes.csv')
  const words = ['compare', join(folder, older), join(folder, 'latest'), '--out', out]
  const compared = await callCommand(world, [...words, '--json'])
  const { list, records, changes, ...both } = JSON.parse(compared.stdout) as {
    list: string
    newer: { folder: string }
    records: { [name: string]: number }
    changes: string
  }
  expect({ list, changes }).toEqual({ list: 'plans', changes: out })
  // A link may move meanwhile.
  expect(both.newer.folder).toBe(await realpath(join(folder, newer)))
  expect(records['opening']! + records['new']! - records['gone']!).toBe(records['closing'])
  expect(records['new']! + records['gone']! + records['changed']!).toBeGreaterThan(0)
  expect(await readFile(out, 'utf8')).toMatch(/^_change,id,table,position,field,before,after\n/)
  expect(await callCommand(world, words)).toMatchObject({ code: 2, stderr: expect.stringContaining('--out') })
  const INIT_CWD = world.dataDir
  const byRun = await callCommand(world, ['compare', `${runs[0]}.1`, runs[1]!], { env: { INIT_CWD } })
  expect(byRun.stdout).toMatch(/^Changes of plans from /)
  const second = join(world.dataDir, `changes-plans-${runs.join('-')}.csv`)
  expect(await readFile(second, 'utf8')).toBe(await readFile(out, 'utf8'))
})
