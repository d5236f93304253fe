import { createSendChanges } from '../changes/send-changes.ts'
import { createAuditImport } from './audit-import.ts'
import { createCloseExport } from './close-export.ts'
import { createCloseImport } from './close-import.ts'
import { createCloseRecovery } from './close-recovery.ts'
import type { ActivityDeps } from './deps.ts'
import { withFailures } from './failures.ts'
import { createFindMissed } from './find-missed.ts'
import { knownRuns } from './known-run.ts'
import { createLeaveResumes } from './leave-resumes.ts'
import { createNoteDecision } from './note-decision.ts'
import { createOpenExport } from './open-export.ts'
import { createOpenFetch } from './open-fetch.ts'
import { createOpenImport } from './open-import.ts'
import { createOpenPublish } from './open-publish.ts'
import { createPauseIfFailing } from './pause-if-failing.ts'
import { createOpenRecovery } from './open-recovery.ts'
import { createPublishExport } from './publish-export.ts'
import { createReadSegment } from './read-segment.ts'
import { createResolveRow } from './resolve-row.ts'
import { createRunRates } from './run-rates.ts'
import { createSendImport } from './send-import.ts'
import { createSendNotice } from './send-notice.ts'
import { createSendRecovery } from './send-recovery.ts'
import { createSnapshotRecovery } from './snapshot-recovery.ts'
import { createStageImport } from './stage-import.ts'
import { beating } from './with-heartbeat.ts'

/** Every step of every workflow, over the world the worker was wired to. */
export function createActivities(deps: ActivityDeps) {
  const rates = createRunRates(deps.billing)
  const sendChanges = createSendChanges(deps.state)
  const { ofExport, ofImport, ofRecovery, ofChanges } = knownRuns(deps)
  /** Imports that this process has staged. */
  const stagedHere = new Set<string>()
  const activities = {
    openExport: beating(createOpenExport(deps)),
    openFetch: beating(createOpenFetch(deps)),
    openPublish: beating(createOpenPublish(deps)),
    readSegment: ofExport(createReadSegment({ deps, rates })),
    publishExport: ofExport(createPublishExport(deps)),
    closeExport: beating(ofExport(createCloseExport({ deps, rates }))),
    openImport: beating(createOpenImport(deps)),
    stageImport: ofImport(createStageImport({ deps, rates, stagedHere })),
    sendImport: ofImport(createSendImport({ deps, rates, sendChanges, stagedHere })),
    auditImport: ofImport(createAuditImport({ deps, rates })),
    closeImport: ofImport(createCloseImport({ deps, rates })),
    openRecovery: beating(createOpenRecovery(deps)),
    snapshotRecovery: ofRecovery(createSnapshotRecovery({ deps, rates })),
    sendRecovery: ofRecovery(createSendRecovery({ deps, rates, sendChanges })),
    leaveResumes: beating(ofRecovery(createLeaveResumes(deps))),
    closeRecovery: ofRecovery(createCloseRecovery({ deps, rates })),
    noteDecision: ofChanges(createNoteDecision(deps)),
    resolveRow: ofChanges(createResolveRow(deps)),
    sendNotice: createSendNotice(deps),
    findMissed: beating(createFindMissed(deps)),
    pauseIfFailing: createPauseIfFailing(deps),
  }
  return withFailures(activities, deps)
}

export type Activities = ReturnType<typeof createActivities>
