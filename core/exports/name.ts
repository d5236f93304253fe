import { type Execution, nameRun } from '../runs/name.ts'
import type { PublishedState } from '../state/publications.ts'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { foldersReported } from './report-files.ts'

/**
 * Names an export or a fetch. A name stays taken after its parts are pruned, because the report and the published
 * data outlive them.
 */
export async function nameExport(of: {
  dataDir: string
  shared: SharedFolder
  state: PublishedState
  execution: Execution
}): Promise<string> {
  const published = new Set((await of.state.publications.all()).map(({ run }) => toFileName(run)))
  const taken = published.union(await foldersReported(of))
  return await nameRun({ ...of, taken })
}
