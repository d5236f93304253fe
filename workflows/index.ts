// The entry point for Temporal: the name of each export is a workflow type.
export { exportData, fetchDocuments, publishRun } from './export-run.ts'
export { importFile } from './import-file.ts'
export { deliverNotification } from './deliver-notification.ts'
export { watchSchedules } from './watch-schedules.ts'
export { recoverSubscriptions } from './recover-subscriptions.ts'
