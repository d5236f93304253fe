import { cancellationSignal, heartbeat } from '@temporalio/activity'
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { finished } from 'node:stream/promises'
import { auditRetentions, type RetentionAudit } from '../changes/audit-retentions.ts'
import { replaceFile } from '../destinations/durable.ts'
import { type ImportLimits, type ImportPlan, runFiles } from '../imports/import-plan.ts'
import { type AuditNote, readRunNotes } from '../imports/run-notes.ts'
import type { ActivityDeps } from './deps.ts'
import { withHeartbeat } from './with-heartbeat.ts'
import type { RunRates } from './run-rates.ts'

/** So many findings are named in the report; all of them are in `findings.jsonl`. */
const mostNamed = 100

/** Proves an import of retentions against the service's own list, and keeps what was found in the run's folder. */
export function createAuditImport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async function auditImport({
    plan,
    limits,
  }: {
    plan: ImportPlan
    limits: ImportLimits
  }): Promise<RetentionAudit> {
    const folder = join(deps.dataDir, plan.folder)
    const { staged } = await readRunNotes(folder)
    const findings = createWriteStream(join(folder, runFiles.findings))
    const first: AuditNote['first'] = []
    let found = 0
    try {
      const audit = await withHeartbeat({
        report: () => heartbeat({ phase: 'holding the rows against the list', findings: found }),
        work: () =>
          auditRetentions({
            ledger: deps.state.ledger,
            run: plan.run,
            billing: rates.of({ run: plan.run, ...limits }),
            workspace: plan.identity.workspace,
            testMode: plan.identity.mode === 'test',
            newestBefore: staged?.newestBefore,
            readLagMs: deps.readLagMs,
            concurrency: deps.concurrency,
            signal: cancellationSignal(),
            onFinding(finding) {
              found += 1
              if (first.length < mostNamed) first.push({ row: finding.row, words: finding.words })
              findings.write(`${JSON.stringify(finding)}\n`)
            },
          }),
      })
      await replaceFile(join(folder, runFiles.audit), JSON.stringify({ ...audit, first }, null, 2))
      return audit
    } finally {
      await finished(findings.end())
    }
  }
}
