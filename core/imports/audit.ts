import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Billing } from '../billing/client.ts'
import { auditRetentions } from '../changes/audit/audit-retentions.ts'
import type { RetentionAudit } from '../changes/audit/finding.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { replaceFile } from '../storage/durable.ts'
import { type ImportPlan, runFiles } from './plan.ts'
import { type AuditNote, readRunNotes } from './run-files.ts'

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
