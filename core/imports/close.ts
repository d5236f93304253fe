import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { SharedFolder } from '../storage/cached.ts'
import type { Billing } from '../billing/client.ts'
import { auditRetentions, type RetentionAudit } from '../changes/audit-retentions.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { type ImportPlan, runFiles } from './input.ts'
import type { AuditNote, ImportNotes } from './run-files.ts'
import type { EndedNote, RunNotes } from '../runs/run-notes.ts'

/** The most findings named in the report; `findings.jsonl` has all of them. */
const mostNamed = 100

/**
 * Compares an import of retentions with the service's own list, and notes its findings.
 */
export async function auditImport(options: {
  deps: {
    ledger: Ledger
    notes: RunNotes
    shared: SharedFolder
    dataDir: string
    readLagMs: number
    concurrency: number
  }
  plan: ImportPlan
  billing: Billing
  signal: AbortSignal
  onFinding: () => void
}): Promise<RetentionAudit> {
  const { deps, plan, billing, signal, onFinding } = options
  const { ledger, notes, shared, readLagMs, concurrency } = deps
  const { workspace, mode } = plan.identity
  const { staged } = await notes.read<ImportNotes>(plan.run)
  const file = join(deps.dataDir, plan.folder, runFiles.findings)
  // The run may continue on a worker with an empty folder.
  mkdirSync(dirname(file), { recursive: true })
  // Findings are few. The error of a stream would reach no caller, and end the process.
  const findings = openSync(file, 'w')
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
    // Not over the findings of a later attempt.
    await notes.write(plan.run, { audit: null })
    await shared.keep(file)
    await notes.write(plan.run, { audit: { ...audit, first } })
    return audit
  } finally {
    closeSync(findings)
  }
}

/** Lets the same command resume an import that ended before its ledger was restored from a backup. */
export async function reopenImport(notes: RunNotes, run: string, ended: EndedNote): Promise<void> {
  const stopped: EndedNote = { ...ended, how: 'stopped', why: 'its ledger was restored from a backup' }
  // The audit is of rows that the ledger has forgotten.
  await notes.write(run, { ended: stopped, audit: null })
}
