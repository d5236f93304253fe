import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { missingExports, type ScheduleSlot, toExpected } from '../../../core/schedules/slots.ts'
import { findProven } from '../../../core/exports/proven.ts'
import { openState } from '../../../core/state/open.ts'
import { allowedRoot } from '../../../core/storage/inside.ts'
import type { Publication } from '../../../core/state/publications.ts'
import { publicationOf } from '../exports/record-read.ts'

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

const note = (more: Partial<Publication> = {}) =>
  publicationOf({ run: 'by-hand', startedAt: new Date(at + hour).toISOString(), ...more })

const isHeld = async (...published: Publication[]) =>
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

  test('is held in the folder that its input names, as an export writes it', async () => {
    const out = 'shared/nightly'
    const place = await allowedRoot({ out, dataDir: '/data', outDirs: [] })
    const expected = toExpected({ resources: ['customers'], out }, '/data')!
    const published = [note({ destination: 'csv', place })]
    expect(await missingExports({ slot, expected, published, files: undefined })).toEqual([])
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

  test('is as new as its read: the latest read counts, though an older one was published later', async () => {
    const later = note({ run: 'later', startedAt: new Date(at + 3 * hour).toISOString() })
    const older = note({ run: 'older' })
    const wanted = { ...customers, when: () => true }
    expect(await findProven({ published: [later, older], wanted, files: undefined })).toMatchObject({
      run: 'later',
    })
  })

  test('proves nothing once its manifest is gone, and everything again where the folder was moved whole', async () => {
    const before = await folder()
    const written = await openState({ folder: before })
    const manifest = join('exports', 'customers', 'run', 'manifest.json')
    await written.publications.add(note({ destination: 'csv', manifest: join(before, manifest) }))
    await written.close()
    const dataDir = join(await folder(), 'moved')
    await rename(before, dataDir)
    await mkdir(before)
    const state = await openState({ folder: dataDir })
    onTestFinished(() => state.close())
    const published = await state.publications.all()
    expect(published[0]?.manifest).toBe(join(dataDir, manifest))
    const find = () =>
      findProven({
        published,
        wanted: { ...customers, destination: 'csv', when: () => true },
        files: undefined,
      })
    expect(await find()).toBeUndefined()
    await mkdir(join(dataDir, manifest, '..'), { recursive: true })
    await writeFile(join(dataDir, manifest), '{"verdict": "proven"}')
    expect(await find()).toBeUndefined()
  })

  test('is not taken for gone where the disk does not let it be read', async () => {
    const dataDir = await folder()
    // Failing disks give different errors; a folder in place of the file is an error on all of them.
    const manifest = join(dataDir, 'manifest.json')
    await mkdir(manifest)
    const published = [note({ destination: 'csv', manifest })]
    const wanted = { ...customers, destination: 'csv', when: () => true }
    await expect(findProven({ published, wanted, files: undefined })).rejects.toThrow(/EISDIR/)
  })
})
