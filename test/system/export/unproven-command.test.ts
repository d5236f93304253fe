import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, startTestWorker } from './world.ts'

test(
  'an export that ends at its cap claims nothing: not in the terminal, with --json, in the manifest or in _exports',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 800 } })
    await startTestWorker(world)
    const words = ['export', 'customers', '--input', 'maxPages=3', '--to', 'csv,duckdb']
    const shown = await callCommand(world, words)
    expect(shown).toMatchObject({ code: 3, stdout: expect.stringContaining('capped at 3 pages') as string })
    const said = await callCommand(world, [...words, '--json'])
    expect({ code: said.code, stderr: said.stderr }).toMatchObject({ code: 3 })
    const { run, exports } = JSON.parse(said.stdout) as {
      run: string
      exports: { destination: string; manifest: string }[]
    }
    const capped = { verdict: 'unproven', reasons: ['capped at 3 pages'], completeThrough: null }
    expect(exports).toMatchObject([capped, capped])
    const { manifest = '' } = exports.find(({ destination }) => destination === 'csv') ?? {}
    const csv = JSON.parse(await readFile(manifest, 'utf8')) as Manifest
    const file = join(world.dataDir, 'warehouse.duckdb')
    const [row] = (await askDuckDb(file, `select * from _exports where run = '${run}'`)) ?? []
    expect(row).toMatchObject({ verdict: 'unproven', complete_through: null, capped: 'true' })
    const duckdb = JSON.parse(row?.['manifest'] ?? '') as Manifest
    for (const { completeThrough, scope, reasons } of [csv, duckdb]) {
      expect({ completeThrough, reasons }).toEqual({ completeThrough: null, reasons: ['capped at 3 pages'] })
      expect(scope.join(' ')).toMatch(/^\d+ records of customers .* page limit/)
    }
    for (const text of [shown.stdout, said.stdout, JSON.stringify(csv), JSON.stringify(duckdb)])
      expect(text).not.toMatch(/Every record|complete through|completeThrough":"/i)
  },
)
