import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { openTestWorker, openWorld, type World } from '../export/world.ts'
import { idsOf } from './world.ts'

let world: World
let files: string
let stop: () => Promise<void>

beforeAll(async () => {
  world = await openWorld({ counts: { customers: 1, creditnotes: 20, cancellations: 8 } })
  files = join(world.dataDir, '..', `${world.workspace}-files`)
  await mkdir(files)
  await writeFile(join(files, 'folios.csv'), 'Folio;Emisión\r\n501;2026-03-01\r\n502;2026-03-01\r\n')
  await writeFile(join(files, 'wrong.csv'), 'id\n501\n501.0\n5 02\n')
  await writeFile(join(files, 'header.csv'), 'id\n')
  await writeFile(join(files, 'book.xlsx'), Buffer.from('504b0304140000000800', 'hex'))
})
afterAll(async () => {
  await stop?.()
  await world.close()
})

const fetch = (...words: string[]) => callCommand(world, ['fetch', ...words], { env: { INIT_CWD: files } })

describe('a fetch from the command line with bad input', () => {
  test.each([
    ['unknown documents', ['invoices', '501'], 'creditnotes, cancellations'],
    ['no id', ['creditnotes'], 'missing required argument'],
    ['an id that can be none', ['creditnotes', '501,502'], '501,502: not valid'],
    ['a folder', ['creditnotes', '.'], 'is not a file'],
    ['a file and ids', ['creditnotes', 'folios.csv', '501'], 'Name one file or ids'],
    ['a file without a column id', ['creditnotes', 'folios.csv'], 'Its columns are Folio, Emisión'],
    ['a mistyped column', ['creditnotes', 'folios.csv', '--input', 'idColumn=folios'], 'Did you mean Folio?'],
    ['cells that are no id', ['creditnotes', 'wrong.csv'], 'row 3 has 501.0; row 4 has 5 02'],
    ['a file with a header only', ['creditnotes', 'header.csv'], 'has a header but no rows'],
    ['a workbook', ['creditnotes', 'book.xlsx'], 'book.xlsx'],
    [
      'a column of another resource',
      ['creditnotes', '501', '--exclude', 'customers.email'],
      'customers.email',
    ],
    [
      'what is started and left by the same command',
      ['creditnotes', '501', '--local', '--detach'],
      'npx connector up',
    ],
  ])('is refused at once where there is %s', async (_, words, says) => {
    const { code, stdout, stderr } = await fetch(...words)
    expect(stderr).toMatch(/^error: [^\n]+\n$/)
    expect(stderr).toContain(says)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(await readdir(world.dataDir)).toEqual([])
  })
})

describe('a fetch from the command line', () => {
  test('brings the documents of a column and ends with 3 and their names where some do not exist', async () => {
    const worker = await openTestWorker(world)
    stop = () => worker.stop()
    await writeFile(join(files, 'more.csv'), 'Folio\n501\n999\n520\n')
    const { code, stdout } = await fetch('creditnotes', 'more.csv', '--input', 'idColumn=folio', '--json')
    expect(code).toBe(3)
    const report = JSON.parse(stdout) as { run: string; exports: object[]; missing: { file: string } }
    expect(report).toMatchObject({
      summary: '1 of 1 proven complete, 2 records; 1 creditnotes do not exist: 999',
      missing: { count: 1, first: ['999'] },
      exports: [{ mode: 'byId', verdict: 'proven', records: 2 }],
    })
    expect(await readFile(report.missing.file, 'utf8')).toBe('id\n999\n')
    const told = await callCommand(world, ['run', 'report', report.run])
    expect(told).toMatchObject({ code: 3, stdout: expect.stringContaining('1 id does not exist: 999') })
    const { stdout: status } = await callCommand(world, ['run', 'show', report.run, '--json'])
    expect(JSON.parse(status)).toMatchObject({ status: 'completed', name: 'fetch', phase: 'ended' })
    const { stdout: runs } = await callCommand(world, ['run', 'list', '--json'])
    expect(JSON.parse(runs)).toMatchObject({ runs: [{ run: report.run, type: 'fetchDocuments' }] })
  })

  test('of ids ends with 0 where all of them came, and can be followed and published again', async () => {
    const ids = idsOf(world, 'cancellations')
    const detached = await fetch('cancellations', ...ids, '--detach', '--json')
    const { run } = JSON.parse(detached.stdout) as { run: string }
    expect(run).toMatch(/^fetch-cancellations-[0-9a-f]{10}$/)
    const watched = await callCommand(world, ['run', 'watch', run, '--json'])
    expect(watched.code).toBe(0)
    expect(JSON.parse(watched.stdout)).toMatchObject({ exports: [{ records: 8, verdict: 'proven' }] })
    const again = await callCommand(world, ['run', 'publish', run, '--to', 'parquet', '--json'])
    expect(again.code).toBe(0)
    expect(JSON.parse(again.stdout)).toMatchObject({
      exports: [{ destination: 'parquet', mode: 'byId', records: 8 }],
    })
  })
})
