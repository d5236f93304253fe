import { customers } from '../../core/billing/resources/customers.ts'
import { closeUntried } from '../../core/changes/close.ts'
import { auditImport } from '../../core/imports/close.ts'
import { canarySize, type ImportPlan, leaseOf, parseImportInput } from '../../core/imports/input.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import { openImport } from '../../core/imports/open.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import { stageRun } from '../../core/imports/staging.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import { toReceiptTables } from '../../core/imports/totals.ts'
import { toMs } from '../../core/runs/inputs.ts'
import type { Job } from './job.ts'

export const importJob: Job<ImportPlan> = {
  async open({ deps, context, request, check }) {
    const { owner: execution, scheduledAt: startedAt, takeLeases } = context
    const { noted } = await deps.notes.name<ImportNotes>(
      execution.workflowId,
      ({ job, execution: { runId } }) => job === 'import' && runId === execution.runId,
    )
    if (noted.plan !== undefined) return noted.plan
    const input = parseImportInput(request)
    await check({ identity: input.identity, resource: customers })
    return await openImport({ deps, input, execution, startedAt, takeLeases })
  },
  // An execution that somebody reset continues as another one, which takes the lease over.
  lease: ({ run }, { owner }) => ({ name: leaseOf(run), owner, taken: 'always' }),
  async stage({ deps, context, plan, billing }) {
    const { owner, signal, isClosedTo, report } = context
    await fetchInput({ ...deps, ...plan })
    const of = { deps: { ...deps, owner, isClosed: isClosedTo(owner) }, plan, billing, signal }
    const onPhase = (phase: string) => report(() => ({ phase }))
    const staged = await stageRun({ ...of, onPhase })
    return { ...staged, tables: toReceiptTables({ file: staged.totals }) }
  },
  staged: async (notes, run) => (await notes.read<ImportNotes>(run)).staged?.staged,
  work: (plan) => ({
    run: plan.run,
    kind: importKinds[plan.kind].change,
    settleMs: toMs(plan.verifyAfter),
    // Only resumes are attempted several times.
    attempts: { most: 1, waitsMs: [0] },
    canarySize: canarySize(plan),
    breakerWaitsMs: plan.breakerWaits?.map(toMs),
  }),
  prove: ({ context: { signal }, ...of }) => auditImport({ ...of, signal }),
  async leave({ ledger, run, sender, how, why }) {
    if (how === 'finished' && why !== undefined) await closeUntried({ ledger, run, why, sender })
  },
  async report(of) {
    await fetchInput({ ...of, ...of.plan })
    return await writeImportReport(of)
  },
}
