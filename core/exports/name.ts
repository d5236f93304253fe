import { type Execution, nameRun } from '../runs/name.ts'
import { foldersPublished } from './publication-log.ts'
import { foldersReported } from './report-files.ts'

/**
 * Names an export or a fetch. A name stays taken after its parts are pruned, because the report and the published
 * data outlive them.
 */
export async function nameExport(of: { dataDir: string; execution: Execution }): Promise<string> {
  const { dataDir } = of
  const taken = (await foldersPublished(dataDir)).union(await foldersReported(dataDir))
  return await nameRun({ ...of, taken })
}
