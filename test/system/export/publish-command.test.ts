import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, afterAll, describe, expect, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import type { ExportInput } from '../../../core/exports/input.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { asked, createWorld, local, openTestWorker, openWorld, runExport, type World } from './world.ts'

type Worker = Awaited<ReturnType<typeof openTestWorker>>

const fileOf = ({ dataDir }: World) => join(dataDir, 'warehouse.duckdb')

const ask = (world: World, sql: string) => askDuckDb(fileOf(world), sql)

const publish = (world: World, words: readonly string[], env: Record<string, string> = {}) =>
  callCommand(world, ['run', 'publish', ...words], { env })

describe('publish', () => {
  let world: World
  let worker: Worker
  beforeAll(async () => {
    world = await openWorld({ counts: { customers: 150, plans: 10 } })
    worker = await openTestWorker(world)
  })
  afterAll(async () => {
    await worker.stop()
    await world.close()
  })

  const export_ = async (input: ExportInput) => {
    return runExport(world, input)
  }

  test('takes an export to further destinations, and asks the service nothing', async () => {
    const { run } = await export_({ resources: ['customers', 'plans'] })
    const before = asked(world)
    const { code, stdout, stderr } = await publish(world, [run, '--to', 'parquet,duckdb', '--json'])
    // The same publication in whatever order it was asked for.
    expect(stderr).toContain(`publish-${run}-to-duckdb-parquet`)
    expect(code).toBe(0)
    const { exports } = JSON.parse(stdout) as { exports: { resource: string; destination: string }[] }
    expect(exports.map(({ resource, destination }) => `${resource} to ${destination}`)).toEqual([
      'customers to parquet',
      'customers to duckdb',
      'plans to parquet',
      'plans to duckdb',
    ])
    expect(asked(world)).toBe(before)
    expect(await ask(world, 'select count(*) as n from customers')).toEqual([{ n: '150' }])
  })

  test('is a run like any other: `run show`, `run report` and `run list` know it', async () => {
    const { run } = await export_({ resources: ['plans'] })
    expect((await publish(world, [run, '--to', 'parquet'])).code).toBe(0)
    const publication = `publish-${run}-to-parquet`
    const call = async (...words: string[]) => {
      const { code, stdout, stderr } = await callCommand(world, [...words, '--json'])
      expect({ words, code, stderr }).toMatchObject({ code: 0 })
      return JSON.parse(stdout) as object
    }
    expect(await call('run', 'show', publication)).toMatchObject({
      status: 'completed',
      name: 'publication',
      phase: 'ended',
      resources: [{ resource: 'plans', state: 'proven', records: 10 }],
    })
    const report = { run, verdict: 'proven', exports: [{ resource: 'plans', destination: 'parquet' }] }
    expect(await call('run', 'report', publication)).toMatchObject(report)
    // The export keeps its own report.
    expect(await call('run', 'report', run)).toMatchObject({
      exports: [{ resource: 'plans', destination: 'csv' }],
    })
    const page = join(world.dataDir, 'exports', 'reports', `${publication}.html`)
    expect(await readFile(page, 'utf8')).toContain('<!doctype html>')
    const { runs } = (await call('run', 'list')) as { runs: { run: string; kind: string }[] }
    expect(runs).toContainEqual(expect.objectContaining({ run: publication, kind: 'publish' }))
  })

  test('of an unproven export ends with 3, as the export did', async () => {
    const { run } = await export_({ resources: ['customers'], maxPages: 1 })
    const { code, stdout } = await publish(world, [run, '--to', 'parquet'])
    expect(code).toBe(3)
    expect(stdout).toContain('unproven')
  })

  test.each([
    ['a run that is not there', ['export-nothing'], 'No parts of a run export-nothing are kept'],
    [
      'a destination that is none',
      ['export-nothing', '--to', 'oracle'],
      '"oracle" cannot be used for --to <destinations>',
    ],
  ])('refuses %s in one line, with 2', async (_, words, says) => {
    const { code, stderr, stdout } = await publish(world, words)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr.split('\n').filter((line) => line.startsWith('error: '))).toEqual([
      expect.stringContaining(says),
    ])
  })

  test('refuses a destination that the worker lacks, in one line, with 2', async () => {
    const { run } = await export_({ resources: ['plans'] })
    const { code, stderr } = await publish(world, [run, '--to', 'postgres'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: This worker has no destination postgres[^\n]*WAREHOUSE_URL[^\n]*\n$/m)
  })

  test('marks deletes that were held back, once they are allowed', { tags: ['long'] }, async () => {
    await export_({ resources: ['customers'], to: ['duckdb'] })
    const { control } = world.sandbox
    const gone = control.ids({ resource: 'customers' }).slice(20, 60)
    for (const id of gone) control.delete({ resource: 'customers', id })
    const { run, exports } = await export_({ resources: ['customers'], to: ['duckdb'] })
    expect(JSON.stringify(exports)).toContain(`publish ${run} again with --max-deletes all`)
    const deleted = 'select count(*) as n from customers where _deleted_at is not null'
    expect(await ask(world, deleted)).toEqual([{ n: '0' }])
    const { code, stdout } = await publish(world, [run, '--max-deletes', 'all'])
    expect(code).toBe(0)
    expect(stdout).not.toContain('held back')
    expect(await ask(world, deleted)).toEqual([{ n: String(gone.length) }])
  })
})

test(
  'publish --local has a server and a worker of its own, and does without the service',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: { plans: 10 } })
    const worker = await openTestWorker(world)
    const { run } = await runExport(world, { resources: ['plans'] })
    await worker.stop()
    await world.sandbox.close()
    const { code, stderr } = await publish(world, [run, '--to', 'duckdb', '--local'], local)
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(await ask(world, 'select count(*) as n from plans')).toEqual([{ n: '10' }])
  },
)
