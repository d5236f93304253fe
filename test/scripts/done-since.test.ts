import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ChangeKind } from '../../core/changes/change-kind.ts'
import { changeKinds } from '../../core/changes/kinds.ts'
import type { ChangeToStage } from '../../core/changes/staged-changes.ts'
import type { Publication } from '../../core/state/publications.ts'
import type { ExportedItem, ExportReport, PublishedExport } from '../../core/exports/report.ts'
import { openState } from '../../core/state/open.ts'
import type { RowPatch } from '../../core/state/ledger/row.ts'
import type { EndedRun } from '../../scripts/runs/done-since/ended-run.ts'
import { openDoneSince } from '../../scripts/runs/done-since/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { addonRows, retention, stageChanges, workspace } from '../core/changes/engine.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'
import { publicationOf } from '../core/exports/record-read.ts'

const done = { state: 'done', outcome: 'created', answerId: '1' } as const satisfies RowPatch
const rejected = { state: 'rejected', outcome: 'refused' } as const satisfies RowPatch
const parked = { state: 'parked', outcome: 'needsPerson', holdsKey: 0 } as const satisfies RowPatch

const startTime = new Date('2026-11-20T02:00:00Z')

/** A data folder with a state, and what runs leave in it. */
async function openFolder() {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  onTestFinished(() => state.close())
  const identity = { workspace, baseUrl: 'https://billing', mode: 'live', store: state.storeId } as const
  const write = async (path: string, value: object) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), JSON.stringify(value))
  }
  /** Stages rows, and ends each as its patch says. */
  const stage = async (of: { run: string; kind: ChangeKind; rows: ChangeToStage[]; ends: RowPatch[] }) => {
    const { run, kind, rows, ends } = of
    await stageChanges({ ledger: state.ledger, run, kind, changes: rows })
    for await (const { id, row } of state.ledger.rows({ run })) {
      const at = rows.findIndex((one) => one.row === row)
      await state.ledger.move({ id, from: ['staged'], patch: ends[at] ?? done })
    }
  }
  return {
    folder,
    identity,
    write,
    async importRows(of: {
      run: string
      rows: ChangeToStage[]
      ends: RowPatch[]
      kind?: 'addons' | 'retentions' | 'update-contacts'
      store?: string
      verdict?: string
      staged?: number
    }) {
      const { run, rows, kind = 'addons', store = state.storeId, verdict, staged = rows.length } = of
      const changeKind = {
        addons: 'create-addon',
        retentions: 'create-retention',
        'update-contacts': 'update-contact',
      } as const
      await stage({ ...of, kind: changeKinds[changeKind[kind]] })
      const own = { ...identity, store }
      const does = kind === 'update-contacts' ? 'update' : 'create'
      const plan = { run, folder: `imports/${run}`, identity: own, kind, does, dryRun: false, sendAgain: [] }
      await write(`imports/${run}/plan.json`, plan)
      const note = { staged, changes: staged, existingReasons: [], doubtfulEarlier: 0 }
      await write(`imports/${run}/staged.json`, note)
      if (verdict !== undefined) await write(`imports/${run}/report.json`, { verdict, identity: own })
    },
    async recover(of: {
      run: string
      startedAt: string
      ends: Record<string, RowPatch>
      verdict: string
      otherCustomers?: number
      dryRun?: true
      store?: string
    }) {
      const { run, startedAt, ends, verdict, otherCustomers = 0, dryRun = false, store = state.storeId } = of
      const own = { ...identity, store }
      const ids = Object.keys(ends)
      const rows = ids.map((id, index) => ({ row: index + 1, body: { id } }))
      if (!dryRun)
        await stage({ run, kind: changeKinds['resume-subscription'], rows, ends: Object.values(ends) })
      const snapshot = { proven: true, staged: ids.length, leftOut: { otherCustomers } }
      await write(`recoveries/${run}/plan.json`, { plan: { run, identity: own, startedAt, dryRun } })
      await write(`recoveries/${run}/snapshot.json`, snapshot)
      const report = { verdict, ended: { how: 'finished' }, snapshot, identity: own, startedAt }
      await write(`recoveries/${run}/report.json`, report)
    },
    report: (run: string, exports: ExportReport['exports'], store = state.storeId) =>
      write(`exports/reports/${run}.json`, { run, exports, identity: { ...identity, store } }),
    publish: (run: string, startedAt: string, more: Partial<Publication> = {}) =>
      state.publications.add(publicationOf({ resource: 'plans', run, workspace, startedAt, ...more })),
    async isDone(run: string, type: string, verdict: EndedRun['verdict'] = 'proven') {
      const settings = { state: { folder }, dataDir: folder, filesUrl: undefined }
      const notes: string[] = []
      await using since = await openDoneSince({
        settings: settings as unknown as Settings,
        terminal: { note: (text) => notes.push(text) },
      })
      const isDone = await since.isDoneSince({ run, type, verdict, startTime })
      expect(notes).toEqual([])
      return isDone
    },
  }
}

const [first, second, third] = addonRows(3) as [ChangeToStage, ChangeToStage, ChangeToStage]
/** The row as another import of the sheet has it. */
const earlier = (row: ChangeToStage): ChangeToStage => ({
  ...row,
  closed: { state: 'dropped', outcome: 'doneEarlier', error: 'the run run-1 did it' },
})
const invalid = { state: 'rejected', outcome: 'invalid', error: 'it is not valid' } as const
const other = { row: 2, body: { ...second.body, name: 'Corrected' } }

describe('an import needs no person any more once other runs have done what it had not', () => {
  const cases: Record<
    string,
    {
      runs: Omit<Parameters<Awaited<ReturnType<typeof openFolder>>['importRows']>[0], 'run'>[]
      is: boolean
      verdict?: string
    }
  > = {
    'nobody imported the row again': { runs: [{ rows: [first, second], ends: [done, rejected] }], is: false },
    'a later run did the row': {
      runs: [
        { rows: [first, second], ends: [done, rejected] },
        { rows: [{ ...second, row: 1 }], ends: [done] },
      ],
      is: true,
    },
    'a later run was refused the row, too': {
      runs: [
        { rows: [first, second], ends: [done, rejected] },
        { rows: [second], ends: [rejected] },
      ],
      is: false,
    },
    'a later run has it in doubt': {
      runs: [
        { rows: [first, second], ends: [done, rejected] },
        { rows: [second], ends: [{ ...done, outcome: 'storedDifferently' }] },
      ],
      is: false,
    },
    'one of two rows was done': {
      runs: [
        { rows: [first, second, third], ends: [done, rejected, rejected] },
        { rows: [second], ends: [done] },
      ],
      is: false,
    },
    'its row is parked': { runs: [{ rows: [first, second], ends: [done, parked] }], is: false },
    'a person has dropped the parked row': {
      runs: [{ rows: [first, second], ends: [done, { state: 'dropped', outcome: 'dropped' }] }],
      is: true,
      verdict: 'unproven',
    },
    'the ledger lacks a row of it': { runs: [{ rows: [first], ends: [done], staged: 2 }], is: false },
    'it belongs to another state': {
      runs: [
        { rows: [first, second], ends: [done, rejected], store: 'another' },
        { rows: [second], ends: [done] },
      ],
      is: false,
    },
    'its audit proved nothing, although the row was done': {
      runs: [
        {
          kind: 'retentions',
          rows: [
            { row: 1, body: retention(1) },
            { row: 2, body: retention(2) },
          ],
          ends: [done, rejected],
        },
        { kind: 'retentions', rows: [{ row: 1, body: retention(2) }], ends: [done] },
      ],
      is: false,
      verdict: 'unproven',
    },
    'an update of the same fields was done': {
      runs: [
        { kind: 'update-contacts', rows: [{ row: 1, body: { id: 'con_1', phone: '1' } }], ends: [rejected] },
        {
          kind: 'update-contacts',
          rows: [{ row: 1, body: { id: 'con_1', phone: '2', name: 'A' } }],
          ends: [done],
        },
      ],
      is: true,
    },
    'an update of other fields was done': {
      runs: [
        { kind: 'update-contacts', rows: [{ row: 1, body: { id: 'con_1', phone: '1' } }], ends: [rejected] },
        { kind: 'update-contacts', rows: [{ row: 1, body: { id: 'con_1', name: 'A' } }], ends: [done] },
      ],
      is: false,
    },
    'an update of the same fields was done, of a row with an invalid cell': {
      runs: [
        {
          kind: 'update-contacts',
          rows: [{ row: 1, body: { id: 'con_1', phone: '1' }, closed: invalid }],
          ends: [rejected],
        },
        { kind: 'update-contacts', rows: [{ row: 1, body: { id: 'con_1', phone: '2' } }], ends: [done] },
      ],
      is: false,
    },
    'a later run did one of two rows with one key': {
      runs: [
        { rows: [{ ...first, closed: invalid }, { ...first, row: 2 }, third], ends: [done, rejected, done] },
        { rows: [first], ends: [done] },
      ],
      is: false,
    },
    'a sheet is proven that has another row where this one was done': {
      runs: [
        { rows: [first, second, third], ends: [done, rejected, done] },
        {
          rows: [earlier(first), other, { row: 3, body: { ...third.body, name: 'Another' } }],
          ends: [done, done, done],
          verdict: 'proven',
        },
      ],
      is: false,
    },
    'the corrected sheet is proven, where the row has another key': {
      runs: [
        { rows: [first, second, third], ends: [done, rejected, done] },
        {
          rows: [earlier(first), other, earlier(third)],
          ends: [done, done, done],
          verdict: 'proven',
        },
      ],
      is: true,
    },
    'the corrected sheet is unproven': {
      runs: [
        { rows: [first, second], ends: [done, rejected] },
        {
          rows: [earlier(first), other],
          ends: [done, done],
          verdict: 'unproven',
        },
      ],
      is: false,
    },
    'another sheet is proven, which lacks the row': {
      runs: [
        { rows: [first, second], ends: [done, rejected] },
        {
          rows: [earlier(first), { ...third, row: 3 }],
          ends: [done, done],
          verdict: 'proven',
        },
      ],
      is: false,
    },
  }
  test.for(Object.entries(cases))('%s', async ([, { runs, is, verdict }]) => {
    const folder = await openFolder()
    for (const [index, run] of runs.entries()) await folder.importRows({ run: `run-${index + 1}`, ...run })
    expect(await folder.isDone('run-1', 'importFile', verdict)).toBe(is)
  })

  test('by later runs alone: an earlier one did what was asked for before', async () => {
    const folder = await openFolder()
    const rows = [{ row: 1, body: { id: 'con_1', phone: '1' } }]
    await folder.importRows({ run: 'run-0', kind: 'update-contacts', rows, ends: [done] })
    const changed = [{ row: 1, body: { id: 'con_1', phone: '2' } }]
    await folder.importRows({ run: 'run-1', kind: 'update-contacts', rows: changed, ends: [rejected] })
    expect(await folder.isDone('run-1', 'importFile')).toBe(false)
  })

  test('a workflow id that was used twice is done only if both runs are', async () => {
    const folder = await openFolder()
    await folder.importRows({ run: 'typed', rows: [first], ends: [done] })
    expect(await folder.isDone('typed', 'importFile')).toBe(true)
    await folder.importRows({ run: 'typed.2', rows: [second], ends: [rejected] })
    expect(await folder.isDone('typed', 'importFile')).toBe(false)
    expect(await folder.isDone('unknown', 'importFile')).toBe(false)
  })
})

describe('a recovery needs no person any more', () => {
  const daily = { run: 'run-1', startedAt: '2026-11-20T02:00:00Z', verdict: 'proven' }
  const next = { run: 'run-2', startedAt: '2026-11-21T02:00:00Z', verdict: 'proven' }
  const back = { state: 'done', outcome: 'recovered', answerId: 'sub_2' } as const

  test.for([
    [
      'once a later run has recovered the subscription',
      { ...next, verdict: 'unproven', ends: { sub_2: back } },
      true,
    ],
    ['once a later run has proven the whole list without it', { ...next, ends: {} }, true],
    ['but not by a run that left others out', { ...next, ends: {}, otherCustomers: 3 }, false],
    ['but not by a run that is unproven', { ...next, ends: {}, verdict: 'unproven' }, false],
    ['but not by an earlier run', { ...next, startedAt: '2026-11-19T02:00:00Z', ends: {} }, false],
    ['but not by a dry run', { ...next, ends: {}, verdict: 'dryRun', dryRun: true }, false],
  ] as const)('%s', async ([, later, is]) => {
    const folder = await openFolder()
    await folder.recover({ ...daily, ends: { sub_1: back, sub_2: parked } })
    expect(await folder.isDone('run-1', 'recoverSubscriptions')).toBe(false)
    await folder.recover(later)
    expect(await folder.isDone('run-1', 'recoverSubscriptions')).toBe(is)
  })

  test('but nothing is known of a run with another state', async () => {
    const folder = await openFolder()
    await folder.recover({ ...daily, ends: { sub_1: back }, store: 'another' })
    await folder.recover({ ...next, ends: {}, store: 'another' })
    expect(await folder.isDone('run-1', 'recoverSubscriptions')).toBe(false)
  })
})

describe('an export needs no person any more', () => {
  const entry = (more: Partial<PublishedExport> = {}) =>
    ({
      resource: 'plans',
      destination: 'duckdb',
      verdict: 'unproven',
      warnings: [],
      ...more,
    }) as PublishedExport
  const later = '2026-11-21T02:00:00Z'
  const earlier = '2026-11-19T02:00:00Z'
  const own = startTime.toISOString()
  const withoutName: string[] = ['name']

  test.for([
    ['once a later export of the list to the same place is proven', later, {}, true],
    ['but not by an earlier one', earlier, {}, false],
    ['but not by an unproven one', later, { verdict: 'unproven' }, false],
    ['but not by an incremental one where it was a full one', later, { mode: 'incremental' }, false],
    ['but not by one of another list', later, { resource: 'customers' }, false],
    ['but not by one to another destination', later, { destination: 'parquet' }, false],
    ['but not by one to another schema', later, { place: 'other' }, false],
    ['but not by one of another workspace', later, { workspace: 'acc_other' }, false],
    ['but not by one in test mode', later, { testMode: true }, false],
    ['but not by one with filters', later, { filters: { status: 'active' } }, false],
    ['but not by one without a column', later, { excluded: withoutName }, false],
    ['but not by one that was cut short', later, { capped: true }, false],
  ] as const)('%s', async ([, startedAt, note, is]) => {
    const folder = await openFolder()
    await folder.report('run-1', [entry()])
    await folder.publish('run-1', own, { verdict: 'unproven' })
    expect(await folder.isDone('run-1', 'exportData')).toBe(false)
    await folder.publish('run-2', startedAt, note)
    expect(await folder.isDone('run-1', 'exportData')).toBe(is)
  })

  test('that had a warning only once a later full one has none', async () => {
    const folder = await openFolder()
    const warned = entry({ verdict: 'proven', warnings: ['7 deletes were held back.'] })
    await folder.report('run-1', [warned])
    await folder.publish('run-1', own, { mode: 'incremental' })
    const isDoneAfter = async (
      run: string,
      at: string,
      published: PublishedExport,
      mode: 'full' | 'incremental',
    ) => {
      await folder.report(run, [published])
      await folder.publish(run, at, { mode })
      return await folder.isDone('run-1', 'exportData')
    }
    const fine = entry({ verdict: 'proven' })
    expect(await isDoneAfter('run-2', '2026-11-21T02:00:00Z', warned, 'full')).toBe(false)
    expect(await isDoneAfter('run-3', '2026-11-22T02:00:00Z', fine, 'incremental')).toBe(false)
    expect(await isDoneAfter('run-4', '2026-11-23T02:00:00Z', fine, 'full')).toBe(true)
  })

  test('that failed once each of its destinations has the list, if its plan is known', async () => {
    const folder = await openFolder()
    const failed: ExportedItem = {
      resource: 'plans',
      destination: null,
      verdict: 'failed',
      reasons: ['the service is away'],
    }
    await folder.report('run-1', [failed])
    await folder.publish('run-2', later)
    expect(await folder.isDone('run-1', 'exportData', 'failed')).toBe(false)
    const plan = { to: ['duckdb', 'parquet'], since: {}, filters: {}, exclude: [], hash: [], forExcel: false }
    await folder.write('parts/run-1/plan.json', plan)
    expect(await folder.isDone('run-1', 'exportData', 'failed')).toBe(false)
    await folder.publish('run-2', later, { destination: 'parquet' })
    expect(await folder.isDone('run-1', 'exportData', 'failed')).toBe(true)
    await folder.report('run-1', [failed], 'another')
    expect(await folder.isDone('run-1', 'exportData', 'failed')).toBe(false)
  })

  test('is never said of runs that leave nothing to compare: a fetch, and a publication of kept parts', async () => {
    const folder = await openFolder()
    await folder.report('run-1', [entry()])
    await folder.publish('run-2', later)
    for (const type of ['fetchDocuments', 'publishRun'])
      expect(await folder.isDone('run-1', type)).toBe(false)
  })
})
