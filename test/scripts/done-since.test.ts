import type { WorkflowClient } from '@temporalio/client'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ChangeKind } from '../../core/changes/change-kind.ts'
import { changeKinds } from '../../core/changes/kinds.ts'
import type { ChangeToStage } from '../../core/changes/staged-changes.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import { openState } from '../../core/state/open.ts'
import type { RowPatch } from '../../core/state/ledger/row.ts'
import { createJudge, type EndedRun } from '../../scripts/runs/done-since.ts'
import { addonRows, retention, stageChanges, workspace } from '../core/changes/engine.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'

const done = { state: 'done', outcome: 'created', answerId: '1' } as const satisfies RowPatch
const rejected = { state: 'rejected', outcome: 'refused' } as const satisfies RowPatch
const parked = { state: 'parked', outcome: 'needsPerson', holdsKey: 0 } as const satisfies RowPatch

const startTime = new Date('2026-11-20T02:00:00Z')

/** A data folder with a state, and what runs leave in it. */
async function openFolder() {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  onTestFinished(() => state.close())
  const notes = createRunNotes(state)
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
      const note = { staged, changes: staged, existingReasons: [], doubtfulEarlier: 0 }
      await notes.write(run, { plan: { ...plan, job: 'import' }, staged: note })
      if (verdict !== undefined) await write(`imports/${run}/report.json`, { verdict, identity: own })
    },
    async isDone(run: string, type: string, verdict: EndedRun['verdict'] = 'proven') {
      const settings = { state: { folder }, dataDir: folder }
      const notes: string[] = []
      // Temporal shows no later run of the same command or schedule.
      const count = () => Promise.resolve({ count: 0, groups: [] })
      await using judge = createJudge({
        client: { workflow: { count } as unknown as WorkflowClient },
        settings,
        terminal: { note: (text) => notes.push(text) },
      })
      const ended = { run, runId: '', type, verdict, startTime, schedule: undefined }
      const isDone = await judge.isDoneSince(ended)
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
    },
    'something else than its rows made it unproven': {
      runs: [{ rows: [first, second], ends: [done, { state: 'dropped', outcome: 'dropped' }] }],
      is: false,
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

  test('by later runs alone, not by an earlier one', async () => {
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
