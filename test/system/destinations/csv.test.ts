import { readdirSync, rmSync } from 'node:fs'
import {
  appendFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import type { Publication } from '../../../core/destinations/destination.ts'
import { exportPath } from '../../../core/destinations/files/publish.ts'
import { parseRows } from '../../core/tables/csv.ts'
import { describeDestination, type SeenRow } from '../../core/destinations/contract.ts'
import { createWorkplace, facts, start, type Workplace } from '../../core/destinations/publication.ts'

const folderOf = (publication: Publication) => join(publication.folder, exportPath(publication))

describeDestination('csv', async () => ({
  destination: createCsvDestination(),
  async rows(publication, table) {
    const text = await readFile(join(folderOf(publication), `${table}.csv`), 'utf8').catch(() => undefined)
    if (text === undefined) return undefined
    const [header = [], ...rows] = parseRows(text)
    return rows.map((row): SeenRow =>
      Object.fromEntries(header.map((name, at) => [name ?? '', row[at] ?? null])),
    )
  },
  remove: (publication, table) => rm(join(folderOf(publication), `${table}.csv`)),
  restores: true,
  close: async () => {},
}))

describe('an export in CSV files', () => {
  let workplace: Workplace
  beforeEach(async () => {
    workplace = await createWorkplace()
  })
  afterEach(() => workplace.close())

  const publish = (publication: Publication) => createCsvDestination().publish(publication)
  const one = [['{"id":"cus_1"}']]
  const publishAs = async (more: Partial<Publication>) =>
    publish(await workplace.toPublication('customers', one, more))
  const beside = async () => (await readdir(join(workplace.exports, 'customers'))).toSorted()
  const pointer = (name: string) =>
    readlink(join(workplace.exports, 'customers', name)).then(
      (link) => link.replace(`${start}-`, ''),
      () => undefined,
    )

  test('is whole, whatever two attempts at publishing it do at once', async () => {
    const destination = createCsvDestination()
    for (let round = 0; round < 20; round += 1) {
      const publication = await workplace.toPublication('customers', one, { run: `run-${round}` })
      const [first, second] = await Promise.all([
        destination.publish(publication),
        // Its beginning falls on another moment of the first one's work each time.
        new Promise((resolve) => setTimeout(resolve, round / 4)).then(() => destination.publish(publication)),
      ])
      expect([first.fresh, second.fresh]).toEqual([true, false])
      expect(await verifyExport(first.location)).toMatchObject({ problems: [] })
    }
  })

  test('is not shown where what was staged is gone before it is shown', async () => {
    const publication = await workplace.toPublication('customers', one)
    const folder = folderOf(publication)
    const hidden = () => readdirSync(dirname(folder)).filter((name) => name.startsWith('.'))
    const lose = () => hidden().forEach((name) => rmSync(join(dirname(folder), name), { recursive: true }))
    await expect(
      publish({ ...publication, onStep: (step) => void (step === 'staged' && lose()) }),
    ).rejects.toThrow(/ENOENT|no such file/)
    expect(await readdir(dirname(folder))).toEqual([])
  })

  test('is a folder with a file for each table and the manifest, byte for byte the parts and a header', async () => {
    const publication = await workplace.toPublication('plans', [
      ['{"id":"p1","amount":0.10}'],
      ['{"id":"p2"}'],
    ])
    const { location, manifestPath } = await publish(publication)
    expect(await readdir(location)).toEqual(['manifest.json', 'plan_tiers.csv', 'plans.csv'])
    const parts = publication.parts.filter((part) => part.table === 'plans')
    const texts = await Promise.all(
      parts.map(async (part) => (await readFile(part.path)).subarray(0, part.bytes).toString()),
    )
    const header = publication.tables[0]!.columns.map((column) => column.name).join(',')
    expect(await readFile(join(location, 'plans.csv'), 'utf8')).toBe(`${header}\n${texts.join('')}`)
    expect((await readFile(join(location, 'plan_tiers.csv'), 'utf8')).trimEnd()).toMatch(
      /^plan_id,position,.*_extra$/,
    )
    expect(JSON.parse(await readFile(manifestPath!, 'utf8'))).toMatchObject({
      dialect: { delimiter: ',', decimal: '.', bom: false, formulaGuard: false },
      tables: [
        { name: 'plans', rows: 2, files: [{ path: 'plans.csv', rows: 2 }] },
        { name: 'plan_tiers', rows: 0 },
      ],
    })
  })

  test('of which someone changed a file is not said to be there', async () => {
    const publication = await workplace.toPublication('customers', [['{"id":"cus_1"}']])
    const { location } = await publish(publication)
    // As a spreadsheet does when it saves.
    await appendFile(join(location, 'customers.csv'), '\n')
    await expect(publish(publication)).rejects.toMatchObject({
      name: 'AlreadyPublishedError',
      message: expect.stringContaining('no longer has customers.csv as published'),
    })
  })

  test('has what was rejected in a file of its own, only if anything was', async () => {
    const publication = await workplace.toPublication('customers', [
      ['{"id":"1"}', '"x"'],
      ['{"name":"a\\nb"}'],
    ])
    const { location, manifest } = await publish(publication)
    const lines = (await readFile(join(location, 'rejected.jsonl'), 'utf8')).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
      { reason: 'the record is not an object', record: 'x' },
      { reason: 'the record has no id', record: { name: 'a\nb' } },
    ])
    expect(manifest.rejected).toMatchObject({ rows: 2, files: [{ path: 'rejected.jsonl' }] })
  })

  test('leaves no temporary names behind, and clears away those of a crash', async () => {
    const left = join(workplace.exports, 'customers', `.${start}-export-customers-2026-03-01.0123abcd.tmp`)
    const other = left.replace('.0123abcd', '-filtered.0123abcd')
    await mkdir(left, { recursive: true })
    await mkdir(other)
    await writeFile(join(left, 'customers.csv'), 'torn')
    await publishAs({})
    expect(await beside()).toEqual([
      basename(other),
      `${start}-export-customers-2026-03-01`,
      'latest',
      'latest-proven',
    ])
  })

  test.each([
    [{ mode: 'incremental' }, 'run-incremental'],
    [{ filters: { country: 'CL' } }, 'run-filtered'],
    [{ capped: true }, 'run-capped'],
    [{ mode: 'incremental', filters: { country: 'CL' }, capped: true }, 'run-incremental-filtered-capped'],
  ] as const)('that is not the whole list says so in its name and moves no link (%j)', async (more, name) => {
    const { location } = await publishAs({ run: 'run', ...more })
    expect(basename(location)).toBe(`${start}-${name}`)
    expect(await beside()).toEqual([basename(location)])
  })

  test('moves no link back while the disk does not give what a link leads to', async () => {
    const startedAt = '2026-03-02T03:00:00.000Z'
    const { location } = await publishAs({ run: 'newer', facts: { ...facts, startedAt } })
    const manifest = join(location, 'manifest.json')
    const text = await readFile(manifest, 'utf8')
    // Failing disks give different errors; a folder in place of the file is an error on all of them.
    await rm(manifest)
    await mkdir(manifest)
    await expect(publishAs({ run: 'older' })).rejects.toMatchObject({ name: 'UnwritableError' })
    expect([await pointer('latest'), await pointer('latest-proven')]).toEqual(['newer', 'newer'])
    await rm(manifest, { recursive: true })
    await writeFile(manifest, text)
    expect(await publishAs({ run: 'older' })).toMatchObject({ fresh: true })
    expect([await pointer('latest'), await pointer('latest-proven')]).toEqual(['newer', 'newer'])
  })

  test('moves `latest` to itself, and `latest-proven` only if it is proven', async () => {
    await publishAs({ run: 'first' })
    const startedAt = '2026-03-02T03:00:00Z'
    await publishAs({ run: 'second', facts: { ...facts, startedAt, verdict: 'unproven', reasons: ['x'] } })
    expect([await pointer('latest'), await pointer('latest-proven')]).toEqual(['second', 'first'])
  })

  test('never moves a link back to an older read', async () => {
    await publishAs({ run: 'newer', facts: { ...facts, startedAt: '2026-03-02T03:00:00Z' } })
    await publishAs({ run: 'older' })
    expect([await pointer('latest'), await pointer('latest-proven')]).toEqual(['newer', 'newer'])
  })

  test('moves a link that a crash kept from moving, when it is done again', async () => {
    await publishAs({ run: 'first' })
    const links = join(workplace.exports, 'customers')
    await mkdir(join(links, 'gone'))
    await rm(join(links, 'latest'))
    await symlink('gone', join(links, 'latest'))
    await publishAs({ run: 'first' })
    expect(await pointer('latest')).toBe('first')
  })

  test.each([
    '../../outside',
    'a/b',
    '..',
    '.hidden',
    'latest',
    'latest-proven',
    'ñ:*?',
    'x'.repeat(1000),
    '\ud800',
  ])('lies in its own folder whatever its run is called (%j)', async (run) => {
    const { location } = await publishAs({ run })
    expect(dirname(location)).toBe(join(workplace.exports, 'customers'))
    expect(basename(location)).not.toMatch(/^\.|^latest(-proven)?$/)
    expect((await lstat(location)).isDirectory()).toBe(true)
    expect(await readdir(workplace.exports)).toEqual(['customers'])
  })

  test('is never taken for that of another workspace, and one for Excel lies beside it', async () => {
    const { location } = await publishAs({ run: 'run' })
    const before = await readFile(join(location, 'manifest.json'), 'utf8')
    await expect(publishAs({ run: 'run', workspace: 'acc_2' })).rejects.toMatchObject({
      name: 'AlreadyPublishedError',
    })
    const excel = await publishAs({ run: 'run', forExcel: true })
    expect(excel.location).toBe(`${location}-excel`)
    expect(await readFile(join(location, 'manifest.json'), 'utf8')).toBe(before)
  })

  test('of test data lies apart', async () => {
    const { location } = await publishAs({ testMode: true, run: 'run' })
    expect(location).toBe(join(workplace.exports, 'test', 'customers', `${start}-run`))
    expect(await readdir(workplace.exports)).toEqual(['test'])
  })

  test('that finds a strange folder in its place says so and touches nothing', async () => {
    const name = `${start}-run`
    const folder = join(workplace.exports, 'customers', name)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'mine.txt'), 'mine')
    await expect(publishAs({ run: 'run' })).rejects.toMatchObject({ name: 'UnwritableError' })
    expect(await beside()).toEqual([name])
    expect(await readdir(folder)).toEqual(['mine.txt'])
  })

  test('says where it can not write, and why', async () => {
    await writeFile(workplace.exports, 'a file in the way')
    await expect(publishAs({})).rejects.toMatchObject({
      name: 'UnwritableError',
      message: expect.stringMatching(
        /exports\/customers\/[-\dTZ]+-export-customers-2026-03-01: .*(ENOTDIR|EEXIST)/,
      ),
    })
  })
})
