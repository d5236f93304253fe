import { createSendChanges } from '../changes/send-changes.ts'
import { createAuditImport } from './audit-import.ts'
import { createCloseExport } from './close-export.ts'
import { createCloseImport } from './close-import.ts'
import { createCloseRecovery } from './close-recovery.ts'
import type { ActivityDeps } from './deps.ts'
import { withFailures } from './failures.ts'
import { createFindMissed } from './find-missed.ts'
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
  const activities = {
    openExport: beating(createOpenExport(deps)),
    openFetch: beating(createOpenFetch(deps)),
    openPublish: beating(createOpenPublish(deps)),
    readSegment: createReadSegment({ deps, rates }),
    publishExport: createPublishExport(deps),
    closeExport: beating(createCloseExport({ deps, rates })),
    openImport: beating(createOpenImport(deps)),
    stageImport: createStageImport({ deps, rates }),
    sendImport: createSendImport({ deps, rates, sendChanges }),
    auditImport: createAuditImport({ deps, rates }),
    closeImport: createCloseImport({ deps, rates }),
    openRecovery: beating(createOpenRecovery(deps)),
    snapshotRecovery: createSnapshotRecovery({ deps, rates }),
    sendRecovery: createSendRecovery({ deps, rates, sendChanges }),
    leaveResumes: beating(createLeaveResumes(deps)),
    closeRecovery: createCloseRecovery({ deps, rates }),
    noteDecision: createNoteDecision(deps),
    resolveRow: createResolveRow(deps),
    sendNotice: createSendNotice(deps),
    findMissed: beating(createFindMissed(deps)),
    pauseIfFailing: createPauseIfFailing(),
  }
  return withFailures(activities, deps)
}

export type Activities = ReturnType<typeof createActivities>
