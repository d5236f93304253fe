import { createAttempts } from '../core/runs/sending-attempts.ts'
import { createAuditImport } from './import/audit-import.ts'
import { createCloseImport } from './import/close-import.ts'
import { createCloseRecovery } from './recovery/close-recovery.ts'
import type { ActivityDeps } from './deps.ts'
import { createOpenExport, createOpenFetch, createOpenPublish } from './export/open.ts'
import { createCloseExport, createPublishExport } from './export/publish.ts'
import { createReads } from './export/read.ts'
import { createSteps } from './step.ts'
import { createFindMissed } from './schedules/find-missed.ts'
import { createSkipRemaining } from './recovery/skip-remaining.ts'
import { createNoteDecision } from './operator/note-decision.ts'
import { createOpenImport } from './import/open-import.ts'
import { createPauseIfFailing } from './schedules/pause-if-failing.ts'
import { createOpenRecovery } from './recovery/open-recovery.ts'
import { createResolveRow } from './operator/resolve-row.ts'
import { createRunRates } from '../core/billing/run-rates.ts'
import { createSendImport } from './import/send-import.ts'
import { createSendNotification } from './notify/send-notification.ts'
import { createSendRecovery } from './recovery/send-recovery.ts'
import { createSnapshotRecovery } from './recovery/snapshot-recovery.ts'
import { createStageImport } from './import/stage-import.ts'

/** Creates the registered steps of all workflows. */
export function createActivities(deps: ActivityDeps) {
  const rates = createRunRates(deps.billing)
  const attempts = createAttempts()
  const reads = createReads({ deps, rates })
  const { step, ofExport, ofImport, ofRecovery, ofChanges } = createSteps(deps)
  /** Imports that this process has staged. */
  return {
    openExport: step(createOpenExport(deps)),
    openFetch: step(createOpenFetch(deps)),
    openPublish: step(createOpenPublish(deps)),
    planRead: ofExport(reads.planRead),
    readRange: ofExport(reads.readRange),
    finishRead: ofExport(reads.finishRead),
    publishExport: ofExport(createPublishExport(deps)),
    closeExport: ofExport(createCloseExport({ deps, rates })),
    openImport: step(createOpenImport(deps)),
    stageImport: ofImport(createStageImport({ deps, rates })),
    sendImport: ofImport(createSendImport({ deps, rates, attempts })),
    auditImport: ofImport(createAuditImport({ deps, rates })),
    closeImport: ofImport(createCloseImport({ deps, rates, attempts })),
    openRecovery: step(createOpenRecovery(deps)),
    snapshotRecovery: ofRecovery(createSnapshotRecovery({ deps, rates })),
    sendRecovery: ofRecovery(createSendRecovery({ deps, rates, attempts })),
    skipRemaining: ofRecovery(createSkipRemaining({ deps, attempts })),
    closeRecovery: ofRecovery(createCloseRecovery({ deps, rates, attempts })),
    noteDecision: ofChanges(createNoteDecision()),
    resolveRow: ofChanges(createResolveRow({ deps, rates })),
    sendNotification: step(createSendNotification(deps)),
    findMissed: step(createFindMissed(deps)),
    pauseIfFailing: step(createPauseIfFailing(deps)),
  }
}

export type Activities = ReturnType<typeof createActivities>
