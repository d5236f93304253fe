import { createHash } from 'node:crypto'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import { isPublished } from '../../../core/exports/report.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { callCommand } from '../command-line/call-command.ts'
import { createWorld, runExport, startTestWorker } from './world.ts'

test(
  'an export into a warehouse leaves its certificate in the data folder, which is verified, put back and pruned like others',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { customers: 350 } })
    await startTestWorker(world)
    const export_ = async () => {
      const input = { resources: ['customers' as const], to: ['duckdb' as const] }
      const report = await runExport(world, input)
      return { run: report.run, folder: dirname(report.exports.filter(isPublished)[0]!.manifest!) }
    }
    const first = await export_()
    // What is rejected is in a table of the warehouse.
    world.sandbox.control.setFaults({ faults: [{ kind: 'wrongType', field: 'id', value: null, records: 2 }] })
    const second = await export_()
    expect(await callCommand(world, ['verify', second.folder])).toMatchObject({ code: 0 })
    const { folder } = first
    const row = `select manifest from _exports where run = '${first.run}'`
    const [found] = (await askDuckDb(join(world.dataDir, 'warehouse.duckdb'), row))!
    const { certificate } = JSON.parse(String(found!['manifest'])) as Manifest
    expect(join(world.dataDir, 'exports', certificate!.folder!)).toBe(folder)
    const path = join(folder, 'certificate.jsonl')
    const text = await readFile(path, 'utf8')
    const sumOf = (content: string) => createHash('sha256').update(content).digest('hex')
    expect(certificate!.files).toMatchObject([{ sha256: sumOf(text) }])
    const verify = () => callCommand(world, ['verify', folder])
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Not checked, because the rows of a warehouse are not beside it'),
    })

    // As a forger leaves out a window, and makes all sums fit.
    const lines = text.split('\n')
    const forged = lines.toSpliced(3, 1).join('\n')
    expect(lines[3]).toMatch(/^\{"page":/)
    await writeFile(path, forged)
    const manifest = join(folder, 'manifest.json')
    const fits = { sha256: sumOf(forged), bytes: forged.length }
    const claim = { ...certificate, files: [{ ...certificate!.files[0]!, ...fits }] }
    const known = JSON.parse(await readFile(manifest, 'utf8')) as Manifest
    await writeFile(manifest, JSON.stringify({ ...known, certificate: claim }))
    expect(await verify()).toMatchObject({ code: 1, stdout: expect.stringContaining('line 4: ') })

    await rm(folder, { recursive: true })
    expect(await callCommand(world, ['run', 'publish', first.run])).toMatchObject({ code: 0 })
    expect(await readFile(path, 'utf8')).toBe(text)
    expect(await verify()).toMatchObject({ code: 0 })

    const database = new DatabaseSync(join(world.dataDir, 'state.db'))
    database.exec(`update publications set body = json_set(body, '$.startedAt',
      strftime('%Y-%m-%dT%H:%M:%fZ', json_extract(body, '$.startedAt'), '-40 days'))`)
    database.close()
    expect(await callCommand(world, ['prune', '--older-than', '30d', '--yes'])).toMatchObject({ code: 0 })
    await expect(stat(folder)).rejects.toThrow('ENOENT')
    expect((await stat(second.folder)).isDirectory()).toBe(true)
  },
)
