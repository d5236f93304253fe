import { createAttempts } from '../core/runs/sending-attempts.ts'
import type { ActivityDeps } from './deps.ts'
import { createCheckReferences } from './export/check-references.ts'
import { createOpenExport, createOpenFetch, createOpenPublish } from './export/open.ts'
import { createCloseExport, createPublishExport } from './export/publish.ts'
import { createReads } from './export/read.ts'
import { createSteps } from './step.ts'
import { createFindMissed } from './schedules/find-missed.ts'
import { createPauseIfFailing } from './schedules/pause-if-failing.ts'
import { createResolveRow, noteDecision } from './write/operator.ts'
import { createRunRates } from '../core/billing/run-rates.ts'
import { createWriteSteps } from './write/steps.ts'
import { createSendNotification } from './notify/send-notification.ts'

/** Creates the registered steps of all workflows. */
export function createActivities(deps: ActivityDeps) {
  const rates = createRunRates(deps.billing)
  const attempts = createAttempts()
  const reads = createReads({ deps, rates })
  const { step, opening, ofExport, ofChanges } = createSteps(deps)
  const write = createWriteSteps({ deps, rates, attempts })
  return {
    openExport: opening(createOpenExport(deps)),
    openFetch: opening(createOpenFetch(deps)),
    openPublish: opening(createOpenPublish(deps)),
    planRead: ofExport(reads.planRead),
    readRange: ofExport(reads.readRange),
    finishRead: ofExport(reads.finishRead),
    checkReferences: ofExport(createCheckReferences({ deps, rates })),
    publishExport: ofExport(createPublishExport(deps)),
    closeExport: ofExport(createCloseExport({ deps, rates })),
    openRun: opening(write.openRun),
    stageRun: ofChanges(write.stageRun),
    sendRun: ofChanges(write.sendRun),
    proveRun: ofChanges(write.proveRun),
    skipRemaining: ofChanges(write.skipRemaining),
    closeRun: ofChanges(write.closeRun),
    noteDecision: ofChanges(noteDecision),
    resolveRow: ofChanges(createResolveRow({ deps, rates })),
    sendNotification: step(createSendNotification(deps)),
    findMissed: step(createFindMissed(deps)),
    pauseIfFailing: step(createPauseIfFailing(deps)),
  }
}

export type Activities = ReturnType<typeof createActivities>
