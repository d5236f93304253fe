import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { createWorkplace, type Workplace } from './publication.ts'

describe('an export held against its manifest', () => {
  let workplace: Workplace
  let folder: string
  beforeEach(async () => {
    workplace = await createWorkplace()
    const publication = await workplace.toPublication('subscriptions', [
      [
        '{"id":"s,1","note":"a\\n\\"b\\"","addons":[{"addon":"a","rates":[{"percentage":1}]}],"lines":[{},{}]}',
      ],
      ['{"id":"s2","addons":[{"rates":[{},{}]}]}', '{"id":"s3","note":"ñ"}', '{"no":"id"}'],
    ])
    folder = (await createCsvDestination().publish(publication)).location
  })
  afterEach(() => workplace.close())

  const problems = async () => (await verifyExport(folder)).problems
  const edit = async (file: string, change: (text: string) => string) => {
    const path = join(folder, file)
    await writeFile(path, change(await readFile(path, 'utf8')))
  }
  test('that is as it was published has no problems', async () => {
    const { manifest, problems } = await verifyExport(folder)
    expect(problems).toEqual([])
    expect(manifest?.tables.map((table) => [table.name, table.rows])).toEqual([
      ['subscriptions', 3],
      ['subscription_lines', 2],
      ['subscription_addons', 2],
      ['subscription_addon_rates', 3],
      ['subscription_references', 0],
    ])
  })

  test('lacks a file', async () => {
    await rm(join(folder, 'subscription_lines.csv'))
    await rm(join(folder, 'rejected.jsonl'))
    expect(await problems()).toEqual(['subscription_lines.csv is missing.', 'rejected.jsonl is missing.'])
  })

  test('has a file too many', async () => {
    await writeFile(join(folder, 'notes.txt'), '')
    expect(await problems()).toEqual(['notes.txt is in the folder but not in the manifest.'])
  })

  test('has a letter changed', async () => {
    await edit('subscriptions.csv', (text) => text.replace('ñ', 'ó'))
    expect(await problems()).toEqual([
      'subscriptions.csv is not as it was published: its SHA-256 sum is another.',
    ])
  })

  test('is cut short', async () => {
    await edit('subscriptions.csv', (text) => text.slice(0, -10))
    expect(await problems()).toEqual([
      expect.stringMatching(/^subscriptions.csv has \d+ bytes, and the manifest says \d+\.$/),
    ])
  })

  test('has no manifest, or one that is none', async () => {
    await writeFile(join(folder, 'manifest.json'), '{"version":1}')
    expect(await problems()).toEqual([expect.stringContaining('is not a manifest of this connector: run')])
    await writeFile(join(folder, 'manifest.json'), '{')
    expect(await problems()).toEqual([expect.stringContaining('is not JSON')])
    await rm(join(folder, 'manifest.json'))
    expect(await problems()).toEqual([expect.stringContaining('has no manifest.json')])
    expect((await verifyExport(join(folder, 'nowhere'))).problems).toEqual([
      expect.stringContaining('has no manifest.json'),
    ])
  })

  test('has a manifest that points outside of its folder', async () => {
    await edit('manifest.json', (text) => text.replace('"subscriptions.csv"', '"../subscriptions.csv"'))
    expect(await problems()).toEqual([
      expect.stringContaining('is not a manifest of this connector: tables.0.files.0.path'),
    ])
  })
})
