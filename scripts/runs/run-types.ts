/** The workflow types of the runs that people start, and what the commands call them. */
export const runTypes = {
  exportData: 'export',
  fetchDocuments: 'fetch',
  publishRun: 'publish',
  importFile: 'import',
  recoverSubscriptions: 'recovery',
} as const

type RunType = keyof typeof runTypes

export const isRunType = (type: string): type is RunType => Object.hasOwn(runTypes, type)

/** For a query of Temporal's list of runs. */
export const runTypeQuery = `WorkflowType IN (${Object.keys(runTypes)
  .map((type) => `'${type}'`)
  .join(', ')})`
