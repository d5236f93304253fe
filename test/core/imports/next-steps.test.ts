import { expect, test } from 'vitest'
import { importNextSteps } from '../../../core/imports/view.ts'
import type { ImportPlan } from '../../../core/imports/input.ts'
import type { Origin } from '../../../core/imports/run-files.ts'
import type { EndedNote } from '../../../core/runs/run-notes.ts'
import type { ReportCounts } from '../../../core/runs/view/counts.ts'

const plan = {
  run: 'import-retentions-1',
  kind: 'retentions',
  folder: 'imports/import-retentions-1',
  file: 'imports/import-retentions-1/input/file/March 2026.csv',
  mapping: 'imports/import-retentions-1/input/mapping.json',
  onInvalid: 'skip',
  done: 'refuse',
  existing: 'refuse',
  sendAgain: [],
  dryRun: false,
} as unknown as ImportPlan

const none = { staged: 0, done: 187, rejected: 0, unknown: 0, parked: 0, skipped: 0, notTried: 0 }

const stepsOf = (options: Partial<Parameters<typeof importNextSteps>[0]>) =>
  importNextSteps({
    plan,
    dataDir: '/data',
    ended: undefined,
    counts: none,
    outcomes: {},
    parkedRow: undefined,
    ...options,
  })

const how = (name: EndedNote['how']): EndedNote => ({ how: name, at: '' })

const steps = (counts: Partial<ReportCounts>, ended: EndedNote['how'] = 'finished') =>
  stepsOf({ ended: how(ended), counts: { ...none, ...counts }, parkedRow: 17 })

const folder = '/data/imports/import-retentions-1'
const mapping = `--mapping ${folder}/input/mapping.json`
const file = `'${folder}/input/file/March 2026.csv'`

test('rejected rows lead to their sheet and to the command that imports it', () => {
  expect(steps({ rejected: 13 })).toEqual([
    {
      text: `13 rows to fix: open ${folder}/rejected.csv, then`,
      command: `npx connector import retentions ${folder}/rejected.csv ${mapping}`,
    },
  ])
})

test('parked rows lead to resolve, with the run and the first row', () => {
  expect(steps({ parked: 2 })).toEqual([
    {
      text: `2 parked rows: look in the service as ${folder}/parked.csv says, then (or --absent, --drop)`,
      command: `npx connector run resolve import-retentions-1 --rows 17 --exists <id> --why "..."`,
    },
  ])
})

test('remaining rows lead to the same import: as it is after a stop, with --done skip after an end', () => {
  expect(steps({ staged: 5 }, 'stopped')).toEqual([
    {
      text: 'to resume with the remaining 5',
      command: `npx connector import retentions ${file} ${mapping} --on-invalid skip`,
    },
  ])
  expect(steps({ notTried: 5 })).toMatchObject([
    { command: `npx connector import retentions ${file} ${mapping} --on-invalid skip --done skip` },
  ])
})

test('rows that a finished import has as unknown lead to a repair, and never to a second import', () => {
  expect(steps({ unknown: 5 })).toEqual([
    { text: expect.stringContaining('5 unknown rows') as string, command: 'npx connector state repair' },
  ])
  expect(steps({ unknown: 5, notTried: 2 }).map(({ text }) => text)).toEqual([
    expect.stringContaining('5 unknown rows'),
    'to send the remaining 2',
  ])
  expect(steps({ unknown: 5 }, 'stopped')).toMatchObject([{ text: 'to resume with the remaining 5' }])
})

test('an import that is done has no next step, and one that is active can be followed', () => {
  expect(steps({})).toEqual([])
  expect(stepsOf({})).toEqual([
    { text: 'to follow the run', command: 'npx connector run watch import-retentions-1' },
  ])
})

test('a person reads the name of their own file, with the options that they typed, and never the run’s copy of it', () => {
  const origin: Origin = {
    file: '/home/ana/Marzo 2026.xlsx',
    reading: [
      ['mapping', '/home/ana/mapping.json'],
      ['map', 'RUT=supplier'],
      ['map', 'Folio N°=number'],
      ['sheet', 'Marzo'],
      ['header-row', '3'],
    ],
  }
  const of = (counts: Partial<ReportCounts>, ended: EndedNote, more: Partial<ImportPlan> = {}) =>
    stepsOf({ plan: { ...plan, ...more }, ended, counts: { ...none, ...counts }, origin }).map(
      ({ command }) => command,
    )
  const reading = `--mapping /home/ana/mapping.json --map RUT=supplier --map 'Folio N°=number'`
  const own = `npx connector import retentions '/home/ana/Marzo 2026.xlsx' ${reading} --sheet Marzo --header-row 3`
  expect(of({}, how('refused'))).toEqual([`${own} --on-invalid skip`])
  expect(of({}, how('dryRun'), { dryRun: true })).toEqual([`${own} --on-invalid skip`])
  expect(of({ staged: 2 }, how('stopped'))).toEqual([`${own} --on-invalid skip`])
  expect(of({ notTried: 2 }, how('finished'))).toEqual([`${own} --on-invalid skip --done skip`])
  // The sheet of rejected rows begins with its header.
  expect(of({ rejected: 2 }, how('finished'))).toEqual([
    `npx connector import retentions ${folder}/rejected.csv ${reading}`,
  ])
})
