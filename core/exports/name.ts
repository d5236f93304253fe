import type { Publications } from '../state/publications.ts'
import { type Execution, nameRun } from '../runs/name.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { foldersPublished } from './publication-log.ts'
import { foldersReported } from './report-files.ts'

/**
 * Names an export or a fetch. A name stays taken after its parts are pruned, because the report and the published
 * data outlive them.
 */
export async function nameExport(of: {
  dataDir: string
  shared: SharedFolder
  publications?: Publications | undefined
  execution: Execution
}): Promise<string> {
  const taken = (await foldersPublished(of)).union(await foldersReported(of))
  return await nameRun({ ...of, taken })
}
