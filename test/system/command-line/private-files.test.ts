import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createWorld, local, startCommand } from '../export/world.ts'

/** Everything below the folder, itself included, that other users could use. */
async function openToOthers(folder: string) {
  const names = await readdir(folder, { recursive: true })
  const found = await Promise.all(
    ['', ...names].map(async (name) => {
      const entry = await stat(join(folder, name)).catch(() => undefined)
      return entry === undefined || (entry.mode & 0o077) === 0 ? [] : [`${name} ${entry.mode.toString(8)}`]
    }),
  )
  return { open: found.flat(), all: names }
}

test(
  'what a command writes is for its user alone, the dev server’s database included',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 3 } })
    const dataDir = join(world.dataDir, 'made', 'by the command')
    const env = { ...local, CONNECTOR_DATA_DIR: dataDir }
    const words = ['export', 'plans', '--local', '--to', 'csv,duckdb', '--json']
    const exported = await startCommand(world, words, { env }).ended
    expect(exported, exported.stderr).toMatchObject({ code: 0 })
    const { open, all } = await openToOthers(join(world.dataDir, 'made'))
    for (const name of [/plans\.csv$/, /state\.db$/, /temporal\.db$/, /\.duckdb$/])
      expect(all).toContainEqual(expect.stringMatching(name))
    expect(open).toEqual([])
  },
)
