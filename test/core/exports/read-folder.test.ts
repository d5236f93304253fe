import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { saveCheckpoint } from '../../../core/exports/parts/checkpoint.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import { keepRangePlan, loadRangePlan, rangeFolder } from '../../../core/exports/parts/ranges/kept-ranges.ts'
import { markPublished, markPublishing } from '../../../core/exports/parts/publish-record.ts'
import { layoutOfRead, markDamaged, openRunFolder } from '../../../core/exports/parts/read-folder.ts'
import { nameRun } from '../../../core/runs/name.ts'
import { createSharedFolder } from '../../../core/storage/shared-folder.ts'
import type { ReadState } from '../../../core/reading/state.ts'
import type { Table } from '../../../core/tables/table.ts'
import { noDrift } from '../../../core/tables/drift.ts'
import { createPlan } from '../../system/export/plan.ts'

const resource = 'customers' as const
const isClosed = () => Promise.resolve(true)
const minute = 60_000
const shared = createSharedFolder({ dataDir: '/', store: undefined })
const hashed = { hash: ['customers.tax_id'] }

/** A data folder in which the run `export-1` has read a part of its list. */
async function createFolder(plan: Partial<ExportPlan> = {}, { startedAt = Date.now() } = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'run-folder-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  await nameRun({ dataDir, shared, execution: { workflowId: 'export-1', runId: 'first' }, taken: new Set() })
  const folder = await openRunFolder({
    dataDir,
    shared,
    hashKey: 'key',
    resource,
    isClosed,
    plan: createPlan({ startedAt: new Date(startedAt).toISOString(), ...plan }),
  })
  const path = join(folder, 'customers.00001-00000001.part')
  await writeFile(path, 'a\n')
  const parts = [{ table: 'customers', path, bytes: 2, rows: 1 }]
  // By the worker's clock, which is wrong.
  const read = { startedAt: startedAt - 30 * 24 * 60 * minute } as ReadState
  const checkpoint = { name: '00001-00000001', parts, drift: noDrift(), read, savedAt: '' }
  await saveCheckpoint({ shared, folder, checkpoint })
  return { dataDir, folder }
}

type Next = Partial<Omit<Parameters<typeof openRunFolder>[0], 'plan'>> & { plan?: Partial<ExportPlan> }

/** Whether the next run resumes from what `export-1` has read. */
async function goesOn(dataDir: string, { plan, ...options }: Next = {}) {
  const next = createPlan({ run: 'export-2', ...plan })
  const folder = await openRunFolder({
    dataDir,
    shared,
    hashKey: 'key',
    resource,
    isClosed,
    ...options,
    plan: next,
  })
  return (await readdir(folder)).includes('00001-00000001.checkpoint.json')
}

describe('what an ended run has read', () => {
  test('is gone on from by the next run of the same input', async () => {
    const { dataDir } = await createFolder()
    expect(await goesOn(dataDir)).toBe(true)
  })

  test('is left alone while its run has not ended, though the next run is to another destination', async () => {
    const { dataDir } = await createFolder()
    const asked: string[] = []
    const stillOpen = ({ runId }: { runId: string }) => {
      asked.push(runId)
      return Promise.resolve(false)
    }
    expect(await goesOn(dataDir, { plan: { to: ['parquet'] }, isClosed: stillOpen })).toBe(false)
    expect(asked).toEqual(['first'])
  })

  test('is left alone while another run publishes it', async () => {
    const { dataDir, folder } = await createFolder()
    const execution = { workflowId: 'publish-export-1', runId: 'at work' }
    await markPublishing({ shared, folder }, { execution, asked: ['duckdb'] })
    const isClosed = ({ runId }: { runId: string }) => Promise.resolve(runId !== 'at work')
    expect(await goesOn(dataDir, { isClosed })).toBe(false)
    expect(await goesOn(dataDir, { plan: { run: 'export-3' } })).toBe(true)
  })

  test('is read from the start where the read began more than an hour ago, however late it last wrote', async () => {
    const old = await createFolder({}, { startedAt: Date.now() - 61 * minute })
    expect(await goesOn(old.dataDir)).toBe(false)
    const young = await createFolder({}, { startedAt: Date.now() - 59 * minute })
    expect(await goesOn(young.dataDir)).toBe(true)
  })

  test('is read from the start where an earlier version did not note when the read began', async () => {
    const { dataDir, folder } = await createFolder()
    const path = join(folder, 'read.json')
    const { begunAt: _unknown, ...note } = JSON.parse(await readFile(path, 'utf8')) as { begunAt: string }
    await writeFile(path, JSON.stringify(note))
    expect(await goesOn(dataDir)).toBe(false)
  })

  test('is gone on from for a day by another execution of the same run', async () => {
    const again = { plan: { run: 'export-1.2' } }
    const old = await createFolder({}, { startedAt: Date.now() - 25 * 60 * minute })
    expect(await goesOn(old.dataDir, again)).toBe(false)
    const young = await createFolder({}, { startedAt: Date.now() - 23 * 60 * minute })
    expect(await goesOn(young.dataDir, { plan: { run: 'export-1.two' } })).toBe(false)
    expect(await goesOn(young.dataDir, again)).toBe(true)
  })

  test('is read from the start by a scheduled run where the read began before its slot', async () => {
    const scheduledFor = (at: number) => ({ plan: { scheduledFor: new Date(at).toISOString() } })
    const { dataDir } = await createFolder({}, { startedAt: Date.now() - 10 * minute })
    expect(await goesOn(dataDir, scheduledFor(Date.now() - 9 * minute))).toBe(false)
    const { plan } = scheduledFor(Date.now() - 11 * minute)
    expect(await goesOn(dataDir, { plan: { ...plan, run: 'export-3' } })).toBe(true)
  })

  test('is read from the start where it was hashed with another key', async () => {
    const { dataDir } = await createFolder(hashed)
    expect(await goesOn(dataDir, { plan: hashed, hashKey: 'another' })).toBe(false)
    expect(await goesOn(dataDir, { plan: { ...hashed, run: 'export-3' } })).toBe(true)
  })

  test('is read from the start after it was published, and where it turned out to be damaged', async () => {
    const published = await createFolder()
    await markPublished(
      { shared, folder: published.folder },
      { destination: 'csv', asked: ['csv', 'postgres'] },
    )
    expect(await goesOn(published.dataDir)).toBe(false)
    const damaged = await createFolder()
    await markDamaged(damaged.folder)
    expect(await goesOn(damaged.dataDir)).toBe(false)
  })

  test.each([
    ['whole', 2, true],
    ['damaged', 1, false],
  ])('in ranges is gone on from where the parts of all ranges are %s', async (_how, bytes, expected) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'run-folder-'))
    onTestFinished(() => rm(dataDir, { recursive: true }))
    await nameRun({
      dataDir,
      shared,
      execution: { workflowId: 'export-1', runId: 'first' },
      taken: new Set(),
    })
    const options = { dataDir, shared, hashKey: 'key', resource, isClosed }
    const folder = await openRunFolder({ ...options, plan: createPlan() })
    const read = { startedAt: Date.now() } as ReadState
    const ranges = [{ range: { downTo: 5 } }, { range: { upTo: 5 } }]
    await keepRangePlan({ shared, folder, plan: { root: read, ranges } })
    const own = rangeFolder(folder, 1)
    await mkdir(own)
    const path = join(own, 'customers.00001-00000001.part')
    await writeFile(path, 'a\n'.slice(0, bytes))
    const parts = [{ table: 'customers', path, bytes: 2, rows: 1 }]
    const checkpoint = { name: '00001-00000001', parts, drift: noDrift(), read, savedAt: '' }
    await saveCheckpoint({ shared, folder: own, checkpoint })
    const next = await openRunFolder({ ...options, plan: createPlan({ run: 'export-2' }) })
    expect(await loadRangePlan({ shared, folder: next })).toEqual(
      expected ? { root: read, ranges } : undefined,
    )
  })

  test('keeps its first division into ranges, also if another attempt brings one', async () => {
    const { folder } = await createFolder()
    const planOf = (bound: number) => ({
      root: { startedAt: 1 } as ReadState,
      ranges: [{ range: { downTo: bound } }, { range: { upTo: bound } }],
    })
    await keepRangePlan({ shared, folder, plan: planOf(5) })
    await keepRangePlan({ shared, folder, plan: planOf(7) })
    expect(await loadRangePlan({ shared, folder })).toEqual(planOf(5))
    expect((await readdir(folder)).filter((name) => name.startsWith('ranges'))).toEqual(['ranges'])
    await writeFile(join(folder, 'ranges', 'plan.json'), '{"root"')
    await expect(loadRangePlan({ shared, folder })).rejects.toMatchObject({ name: 'PartsDamagedError' })
  })

  test('does not stand in the way where its note is torn', async () => {
    const { dataDir, folder } = await createFolder()
    await writeFile(join(folder, 'read.json'), '{"finger')
    await mkdir(join(dataDir, 'parts', 'stray'))
    await writeFile(join(dataDir, 'parts', 'a file'), '')
    expect(await goesOn(dataDir)).toBe(false)
  })
})

test('a read whose worker comes back with another hash key starts over, instead of mixing two kinds of hashes', async () => {
  const { dataDir } = await createFolder(hashed)
  expect(await goesOn(dataDir, { plan: { ...hashed, run: 'export-1' }, hashKey: 'another' })).toBe(false)
})

test('parts are of the tables that the version which read them laid out; another one reads the list from the start', async () => {
  const { dataDir, folder } = await createFolder()
  const path = join(folder, 'read.json')
  const note = JSON.parse(await readFile(path, 'utf8')) as { fingerprint: string; tables: Table[] }
  const older = note.tables.slice(0, 1)
  await writeFile(path, JSON.stringify({ ...note, fingerprint: 'of another version', tables: older }))
  expect((await layoutOfRead({ shared, folder })).tables).toEqual(older)
  expect(await goesOn(dataDir)).toBe(false)
})
