import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { missingExports, type ScheduleSlot } from '../../../core/schedules/slots.ts'
import {
  findProven,
  notePublished,
  readPublished,
  type PublishedNote,
} from '../../../core/exports/publication-log.ts'

const hour = 3_600_000
const at = Date.parse('2026-11-22T05:30:00Z')
const slot: ScheduleSlot = { at: at + 40_000, next: at + 24 * hour, workflowId: 'nightly', jitterMs: 60_000 }
const columns = { excluded: [], hashed: [], forExcel: false }
const customers = {
  resource: 'customers',
  destination: 'duckdb',
  mode: 'full' as const,
  filters: {},
  ...columns,
}

const note = (more: Partial<PublishedNote> = {}): PublishedNote => ({
  resource: 'customers',
  destination: 'duckdb',
  run: 'by-hand',
  workspace: 'acc_1',
  testMode: false,
  verdict: 'proven',
  mode: 'full',
  filters: {},
  capped: false,
  ...columns,
  startedAt: new Date(at + hour).toISOString(),
  publishedAt: new Date(at + 2 * hour).toISOString(),
  ...more,
})

const isHeld = async (...published: PublishedNote[]) =>
  (await missingExports({ slot, expected: [customers], published, files: undefined })).length === 0

describe('a scheduled slot', () => {
  test('is held by a proven export whose read began after it and before the next', async () => {
    expect(await isHeld(note())).toBe(true)
    expect(await isHeld(note({ verdict: 'unproven' }))).toBe(false)
    expect(await isHeld(note({ startedAt: new Date(at).toISOString() }))).toBe(false)
    expect(await isHeld(note({ startedAt: new Date(at + 24 * hour).toISOString() }))).toBe(false)
  })

  test('is held by its own run however late that read, and by no other slot’s', async () => {
    const startedAt = new Date(at + 30 * hour).toISOString()
    expect(await isHeld(note({ startedAt, run: 'nightly-2026-11-22T05:30:00Z' }))).toBe(true)
    expect(await isHeld(note({ startedAt, run: 'nightly-2026-11-22T05:30:00Z.2' }))).toBe(true)
    expect(await isHeld(note({ startedAt, run: 'nightly-2026-11-23T05:30:00Z' }))).toBe(false)
    expect(await isHeld(note({ startedAt, run: 'other-2026-11-22T05:30:00Z' }))).toBe(false)
  })

  test('is not held by its own run where that published what was read before', async () => {
    const run = 'nightly-2026-11-22T05:30:00Z'
    expect(await isHeld(note({ run, startedAt: new Date(at - hour).toISOString() }))).toBe(false)
    expect(await isHeld(note({ run, startedAt: new Date(at).toISOString() }))).toBe(true)
  })

  test('is held by what is at least what was asked for, in the place where it was', async () => {
    expect(await isHeld(note({ destination: 'csv' }))).toBe(false)
    expect(await isHeld(note({ resource: 'plans' }))).toBe(false)
    expect(await isHeld(note({ mode: 'incremental' }))).toBe(false)
    expect(await isHeld(note({ filters: { status: 'active' } }))).toBe(false)
    expect(await isHeld(note({ place: '/elsewhere' }))).toBe(false)
    expect(await isHeld(note({ mode: 'byId' }))).toBe(false)
    expect(await isHeld(note({ excluded: ['customers.email'] }))).toBe(false)
    expect(await isHeld(note({ hashed: ['customers.email'] }))).toBe(false)
    expect(await isHeld(note({ forExcel: true }))).toBe(false)
    const less = { ...customers, excluded: ['customers.email'] }
    const published = [note({ excluded: ['customers.email'] })]
    expect(await missingExports({ slot, expected: [less], published, files: undefined })).toEqual([])
    const filtered = { ...customers, mode: 'incremental' as const, filters: { status: 'active' } }
    expect(
      await missingExports({ slot, expected: [filtered], published: [note()], files: undefined }),
    ).toEqual([])
  })
})

describe('what was published', () => {
  const folder = async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'published-'))
    onTestFinished(() => rm(dataDir, { recursive: true }))
    return dataDir
  }

  test('is read back also after a line that a crash cut short, and apart for live and test', async () => {
    const dataDir = await folder()
    expect(await readPublished({ dataDir, testMode: false })).toEqual([])
    await notePublished({ dataDir, published: note({ run: 'first' }) })
    await appendFile(join(dataDir, 'exports', 'published.jsonl'), '{"resource": "cust')
    await notePublished({ dataDir, published: note({ run: 'second' }) })
    await notePublished({ dataDir, published: note({ run: 'rehearsal', testMode: true }) })
    const runs = (await readPublished({ dataDir, testMode: false })).map(({ run }) => run)
    expect(runs).toEqual(['first', 'second'])
  })

  test('is as new as its read: the latest read counts, though an older one was published later', async () => {
    const later = note({ run: 'later', startedAt: new Date(at + 3 * hour).toISOString() })
    const older = note({ run: 'older', publishedAt: new Date(at + 9 * hour).toISOString() })
    const wanted = { ...customers, when: () => true }
    expect(await findProven({ published: [later, older], wanted, files: undefined })).toMatchObject({
      run: 'later',
    })
  })

  test('proves nothing once its manifest is gone, and everything again where the folder was moved whole', async () => {
    const dataDir = await folder()
    const run = join(dataDir, 'exports', 'customers', 'run')
    await mkdir(run, { recursive: true })
    const manifest = join(run, 'manifest.json')
    await notePublished({ dataDir, published: note({ destination: 'csv', manifest }) })
    const published = await readPublished({ dataDir, testMode: false })
    expect(published[0]?.manifest).toBe(manifest)
    const wanted = { ...customers, destination: 'csv', when: () => true }
    expect(await findProven({ published, wanted, files: undefined })).toBeUndefined()
    await writeFile(manifest, '{"verdict": "proven"}')
    expect(await findProven({ published, wanted, files: undefined })).toBeUndefined()
  })
})
