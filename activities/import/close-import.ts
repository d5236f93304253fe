import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { leaveUntried } from '../../core/changes/reconcile/close-remaining.ts'
import { markClaimed } from '../../core/changes/ledger-gap.ts'
import type { EndedNote } from '../../core/runs/run-files.ts'
import { replaceFile } from '../../core/storage/durable.ts'
import { type ImportPlan, runFiles } from '../../core/imports/plan.ts'
import { type ImportReport } from '../../core/imports/view.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import { ownerOf } from '../leases.ts'
import type { SendDeps } from '../send-segment.ts'
import { withHeartbeat } from '../heartbeat.ts'
import { heartbeat } from '@temporalio/activity'

export interface CloseInput {
  plan: ImportPlan
  how: EndedNote['how']
  /** For people: what ended it, where it was not the end of its rows. */
  why?: string
  /** What is left is given up: reported as not tried, and free for another run. */
  giveUp: boolean
}

/** The report as a workflow returns it: without the findings, which name fields and values. */
export type ImportResult = Omit<ImportReport, 'audit'> & {
  audit: Omit<NonNullable<ImportReport['audit']>, 'first'> | null
}

/** Ends an import: its report and its files, and the run is free to be started again. */
export function createCloseImport({ deps, rates, attempts }: SendDeps) {
  return async function closeImport({ plan, how, why, giveUp }: CloseInput): Promise<ImportResult> {
    const { ledger, claims } = deps.state
    const folder = join(deps.dataDir, plan.folder)
    return await withHeartbeat({
      report: () => heartbeat({ phase: 'writing the report' }),
      work: async () => {
        await attempts.end(plan.run)
        // What was sent since a backup that was put back is not free for another run.
        await markClaimed({ ledger, run: plan.run, folder })
        if (giveUp) await leaveUntried({ ledger, run: plan.run, why: why ?? how })
        // An audit of what was sent so far says nothing of what is sent later.
        if (how !== 'finished') await rm(join(folder, runFiles.audit), { force: true })
        const note: EndedNote = { how, ...(why !== undefined && { why }), at: new Date().toISOString() }
        await replaceFile(join(folder, runFiles.ended), JSON.stringify(note))
        const { audit, ...report } = await writeImportReport({ ledger, plan, dataDir: deps.dataDir })
        await claims.release({ what: `import ${plan.run}`, owner: ownerOf() })
        rates.end(plan)
        deps.observer.did({ did: 'ended', run: plan.run, verdict: report.verdict })
        if (audit === null) return { ...report, audit }
        const { first: _, ...counted } = audit
        return { ...report, audit: counted }
      },
    })
  }
}
