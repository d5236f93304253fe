import { type FullReport as ImportReport, toImportView } from '../../core/imports/view.ts'
import { type FullReport as RecoveryReport, toRecoveryView } from '../../core/recoveries/view.ts'
import type { View } from '../../core/runs/view/view.ts'
import { exportPages, folder, identity, startedAt } from './example-exports.ts'

const columns = ['Proveedor', 'Documento', 'Folio', 'Fecha', 'Total', 'Glosa', 'Monto', 'Cantidad']
const fields = 'supplier document number date total lines.1.name lines.1.amount lines.1.quantity'.split(' ')
const counts = { staged: 0, done: 2_991, rejected: 6, unknown: 0, parked: 3, skipped: 0, notTried: 0 }
const run = 'import-retentions-noviembre-a3bc7c25'
const sums = (changes: number, amount: string) => ({
  changes,
  sums: { 'lines.amount': amount, 'lines.quantity': String(changes), total: amount },
})

const importReport: ImportReport = {
  run,
  summary: '',
  verdict: 'unproven',
  reasons: ['3 parked'],
  inDoubt: true,
  by: 'audit',
  ended: { how: 'finished', at: '2026-11-21T02:05:41.000Z' },
  counts,
  outcomes: {},
  audit: null,
  files: { results: 'results.csv', rejected: 'rejected.csv', parked: 'parked.csv' },
  rows: { rejected: [17, 204, 1_331, 1_332, 2_004, 2_998], parked: [88, 512, 2_750] },
  decisions: [
    {
      about: 'approval',
      by: 'Carla Soto',
      at: '2026-11-21T02:01:10.000Z',
      why: 'checked against the ledger',
    },
  ] as unknown as ImportReport['decisions'],
  startedAt,
  identity,
  next: [
    {
      text: '6 rejected rows to fix: open rejected.csv, then',
      command: `npx connector import retentions ${folder}/imports/${run}/rejected.csv`,
    },
    {
      text: '3 parked rows: look in the service as parked.csv says, then (or --absent, --drop)',
      command: `npx connector run resolve ${run} --rows 88 --exists <id> --why "..."`,
    },
  ],
  folder: `${folder}/imports/${run}`,
  kind: 'retentions',
  file: `imports/input/${'f10fc0e54115ed55'.repeat(4)}/file/retenciones noviembre.csv`,
  check: { valid: 2_994, invalid: 6, columns: columns.map((column, at) => ({ column, field: fields[at]! })) },
  totals: {
    file: { rows: 3_000, decimal: ',', ...sums(3_000, '123456789012.50') },
    done: sums(2_991, '122456789012.50'),
    notDone: sums(9, '1000000000.00'),
    columns: { 'lines.amount': 'Monto', 'lines.quantity': 'Cantidad', total: 'Total' },
  },
  first: [
    { row: 17, state: 'rejected', message: 'Fecha: 2026-02-30 is a date that does not exist' },
    { row: 204, state: 'rejected', message: 'is the same retention as row 205' },
    {
      row: 88,
      state: 'parked',
      message: 'it may have been sent, and the service has no way to look it up',
    },
  ],
}

const resumed = { recovered: 87, attemptsUsedUp: 3 }
const recoveryReport: RecoveryReport = {
  run: 'recover-75606670ae',
  summary: '',
  verdict: 'unproven',
  reasons: ['3 parked'],
  inDoubt: true,
  by: 'lookup',
  ended: { how: 'finished', at: '2026-11-21T02:41:00.000Z' },
  counts: { ...counts, done: 118, rejected: 2, parked: 8 },
  outcomes: {},
  decisions: [],
  startedAt,
  identity,
  next: [],
  folder: `${folder}/recoveries/recover-75606670ae`,
  reported: 5,
  resultsSeen: true,
  byReason: {
    gateway_issue: resumed,
    processing_issue: { recovered: 31, refused: 2 },
    reference_expired: { needsPerson: 5 },
  },
  failedCanaries: [],
  needsPerson: [
    '3 fell back after every resume and used up their attempts (3 across all runs): find the cause in the service; only a higher --input attempts=... resumes them again',
    '5 reference_expired: its reference (a purchase order, say) has expired; someone has to ask the customer for a new one',
  ],
  snapshot: null,
  preview: {
    toResume: 123,
    byReason: { gateway_issue: 90, processing_issue: 33 },
    byScheme: { charge_payment: 81, generate_document: 42 },
    byNextBilling: { past: 61, today: 4, future: 50, none: 8 },
    today: '2026-11-21',
    notResumed: { needsPerson: 5, coolingDown: 2 },
    needsPerson: { reference_expired: 5 },
    listValue: {
      byReason: {
        gateway_issue: { CLF: '412.5', CLP: '48213990' },
        processing_issue: { CLP: '11902450', USD: '1199.90' },
      },
      haveMore: 14,
      notValued: { 'a plan is not in the list of plans': 2 },
    },
  },
  recoveredValue: {
    byReason: {
      gateway_issue: { CLF: '398.25', CLP: '46105800' },
      processing_issue: { CLP: '11210300', USD: '1199.90' },
    },
    haveMore: 13,
    notValued: { 'a plan is not in the list of plans': 1 },
  },
  files: { results: 'recovery.csv' },
  audit: null,
  rows: {},
  first: [
    {
      row: 36,
      subscription: 'sub_2WVN00002',
      state: 'parked',
      message: 'needs_attention: gateway_issue (attempt 3 of 3)',
    },
  ],
  coolingDown: [],
}

/** A page of each kind, as a run would have it. */
export const examplePages: Readonly<Record<string, View>> = {
  ...exportPages,
  'import-dry-run': toImportView({
    ...importReport,
    verdict: 'dryRun',
    reasons: [],
    counts: { ...counts, done: 0, rejected: 0, parked: 0 },
    files: {},
    rows: {},
    decisions: [],
    totals: importReport.totals && { file: importReport.totals.file, columns: importReport.totals.columns! },
    first: importReport.first.slice(0, 2),
    next: [{ text: 'to import it', command: 'npx connector import retentions "retenciones noviembre.csv"' }],
  }),
  import: toImportView(importReport),
  'recovery-dry-run': toRecoveryView({
    ...recoveryReport,
    verdict: 'dryRun',
    byReason: {},
    first: [],
    counts: { ...counts, done: 0, rejected: 0, parked: 0 },
    next: [{ text: 'to resume them', command: 'npx connector recover' }],
  }),
  recovery: toRecoveryView(recoveryReport),
}
