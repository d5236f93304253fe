import type { RunRates } from '../../core/billing/run-rates.ts'
import type { RetentionAudit } from '../../core/changes/audit-retentions.ts'
import { auditImport } from '../../core/imports/close.ts'
import type { ImportLimits, ImportPlan } from '../../core/imports/input.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface AuditInput {
  plan: ImportPlan
  limits: ImportLimits
}

/** Proves an import of retentions against the service's own list; see `auditImport`. */
export function createAuditImport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async (context: StepContext, { plan, limits }: AuditInput): Promise<RetentionAudit> => {
    let findings = 0
    context.report(() => ({ phase: 'comparing the rows with the list', findings }))
    const billing = context.watch(rates.forRun({ run: plan.run, ...limits }))
    return await context.outlast(async () => {
      findings = 0
      return await auditImport({
        deps: { ...deps, notes: context.notes, ledger: deps.state.ledger },
        plan,
        billing,
        signal: context.signal,
        onFinding: () => (findings += 1),
      })
    })
  }
}
