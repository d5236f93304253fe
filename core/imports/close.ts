import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { auditRetentions } from '../changes/audit-retentions.ts'
import type { RetentionAudit } from '../changes/audit-retentions.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { replaceFile } from '../storage/durable.ts'
import { type ImportPlan, runFiles } from './input.ts'
import { type AuditNote, readRunNotes } from './run-files.ts'
import { rm } from 'node:fs/promises'
import { closeUntried } from '../changes/close.ts'
import type { EndedNote, RunEnd } from '../runs/run-files.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import type { View } from '../runs/view/view.ts'
import { writeImportReport } from './report.ts'
import type { ImportResult } from './view.ts'

/** The most findings named in the report; `findings.jsonl` has all of them. */
const mostNamed = 100

/**
 * Compares an import of retentions with the service's own list, and keeps the findings in the run's folder.
 */
export async function auditImport(options: {
  deps: { ledger: Ledger; dataDir: string; readLagMs: number; concurrency: number }
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
  onFinding: () => void
}): Promise<RetentionAudit> {
  const { deps, plan, billing, signal, onFinding } = options
  const { ledger, readLagMs, concurrency } = deps
  const { workspace, mode } = plan.identity
  const folder = join(deps.dataDir, plan.folder)
  const { staged } = await readRunNotes(folder)
  // Findings are few. The error of a stream would reach no caller, and end the process.
  const findings = openSync(join(folder, runFiles.findings), 'w')
  const first: AuditNote['first'] = []
  try {
    const audit = await auditRetentions({
      ledger,
      run: plan.run,
      billing,
      workspace,
      testMode: mode === 'test',
      newestBefore: staged?.newestBefore,
      readLagMs,
      concurrency,
      signal,
      onFinding(finding) {
        onFinding()
        if (first.length < mostNamed) first.push({ row: finding.row, message: finding.message })
        writeSync(findings, `${JSON.stringify(finding)}\n`)
      },
    })
    await replaceFile(join(folder, runFiles.audit), JSON.stringify({ ...audit, first }, null, 2))
    return audit
  } finally {
    closeSync(findings)
  }
}

/** Closes the remaining rows of an import, and writes its report and its files. */
export async function closeImport(
  options: RunEnd & {
    ledger: Ledger
    notes: RunNotes
    dataDir: string
    isShared: boolean
    plan: ImportPlan
  },
): Promise<{ result: ImportResult; view: View }> {
  const { ledger, notes, dataDir, isShared, plan, how, why, canary, giveUp } = options
  const folder = join(dataDir, plan.folder)
  if (giveUp) await closeUntried({ ledger, run: plan.run, why: why ?? how })
  // An audit of the rows sent so far proves nothing about rows sent later.
  if (how !== 'finished') await rm(join(folder, runFiles.audit), { force: true })
  const at = new Date().toISOString()
  const note: EndedNote = { how, ...(why !== undefined && { why }), ...(canary && { canary }), at }
  await replaceFile(join(folder, runFiles.ended), JSON.stringify(note))
  const { result, outward: view } = await writeImportReport({ ledger, notes, plan, dataDir, isShared })
  return { result, view }
}

/** Lets the same command resume an import that ended before its ledger was restored from a backup. */
export async function reopenImport({ folder, ended }: { folder: string; ended: EndedNote }): Promise<void> {
  // The audit is of rows that the ledger has forgotten.
  for (const name of [runFiles.audit, runFiles.shown]) await rm(join(folder, name), { force: true })
  const note: EndedNote = { ...ended, how: 'stopped', why: 'its ledger was restored from a backup' }
  await replaceFile(join(folder, runFiles.ended), JSON.stringify(note))
}
