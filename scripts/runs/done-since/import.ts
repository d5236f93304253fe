import { join } from 'node:path'
import { parseBody } from '../../../core/changes/body.ts'
import { summarize } from '../../../core/changes/report.ts'
import { verdictOf } from '../../../core/changes/verdict.ts'
import { importKinds } from '../../../core/imports/kinds.ts'
import { type ImportPlan, runFiles } from '../../../core/imports/input.ts'
import { shouldBeStaged } from '../../../core/imports/report.ts'
import { type AuditNote, readPlan, type StagedNote } from '../../../core/imports/run-files.ts'
import type { FullReport as FullImportReport } from '../../../core/imports/view.ts'
import { readNote } from '../../../core/runs/run-files.ts'
import type { KeySpace } from '../../../core/state/ledger/queries.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { importFolder } from '../run-folders.ts'
import type { EndedRun, Records } from './ended-run.ts'
import { type Rows, readRows, areDoneLater } from './rows.ts'

export async function isImported(records: Records, { run, verdict }: EndedRun): Promise<boolean | undefined> {
  const { dataDir, state } = records
  const plan = await readPlan(importFolder({ dataDir, run }))
  if (plan === undefined) return undefined
  const { identity, does } = plan
  if (identity.store !== state.storeId) return false
  const rows = await readRows({ state, run })
  const staged = await readNote<StagedNote>(join(dataDir, plan.folder, runFiles.staged))
  if (rows === undefined || staged === undefined || rows.all < shouldBeStaged({ plan, staged })) return false
  if (rows.inDoubt > 0 || rows.parked.length > 0) return false
  const kind = importKinds[plan.kind].change.name
  const space = { workspace: identity.workspace, mode: identity.mode, kind }
  // An update does what an earlier one was to do only if it has the same fields; those of an invalid row are not known.
  const answers = (row: LedgerRow, later: LedgerRow) =>
    does !== 'update' || (row.outcome !== 'invalid' && fieldsOf(row).isSubsetOf(fieldsOf(later)))
  if (await areDoneLater({ state, space, rows: rows.left, answers })) {
    if (verdict === 'proven' || rows.done.size === 0) return true
    if (await isProvenButForRows({ ...records, plan, staged })) return true
  }
  return await isInCorrectedSheet({ ...records, run, space, rows })
}

const fieldsOf = (row: LedgerRow) => new Set(Object.keys(parseBody(row)))

/** Whether nothing but its rows made an import unproven. */
async function isProvenButForRows(of: Records & { plan: ImportPlan; staged: StagedNote }): Promise<boolean> {
  const { dataDir, state, plan, staged } = of
  if (staged.existingReasons.length > 0 || staged.doubtfulEarlier > 0) return false
  const audit = await readNote<AuditNote>(join(dataDir, plan.folder, runFiles.audit))
  const { counts, doneWithoutId } = await summarize({ ledger: state.ledger, run: plan.run })
  const { verdict } = verdictOf({
    kind: importKinds[plan.kind].change.name,
    summary: { counts: { ...counts, notTried: 0 }, outcomes: {}, doneWithoutId },
    ...(audit && { audit }),
  })
  return verdict === 'proven'
}

/**
 * Whether a later import has proven the same sheet: it has every row that this run has done in the same place, and has done
 * every row that this run has not. So a corrected row is known that has another key.
 */
async function isInCorrectedSheet(
  of: Records & { run: string; space: KeySpace; rows: Rows },
): Promise<boolean> {
  const { dataDir, state, run, space, rows } = of
  const [key] = rows.done.values()
  if (key === undefined) return false
  const under = await state.ledger.underKeys({ ...space, keys: [key] })
  const own = Math.max(...under.filter((row) => row.run === run).map(({ id }) => id))
  const later = new Set(under.flatMap((row) => (row.run !== run && row.id > own ? [row.run] : [])))
  for (const other of later) {
    const path = join(importFolder({ dataDir, run: other }), runFiles.report)
    const report = await readNote<FullImportReport>(path)
    if (report?.verdict !== 'proven' || report.identity.store !== state.storeId) continue
    const sheet = await readRows({ state, run: other })
    if (sheet === undefined || sheet.left.length + sheet.parked.length + sheet.inDoubt > 0) continue
    const isSame = [...rows.done].every(([row, done]) => sheet.done.get(row) === done)
    if (isSame && rows.left.every(({ row }) => sheet.done.has(row))) return true
  }
  return false
}
