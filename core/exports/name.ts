import { type Execution, nameRun } from '../runs/name.ts'
import { foldersPublished } from './publication-log.ts'
import { foldersReported } from './report-files.ts'

/**
 * The name of an export or a fetch. What it has published and its report outlive its parts, so its name is not given
 * again when they are pruned.
 */
export async function nameExport(of: { dataDir: string; execution: Execution }): Promise<string> {
  const { dataDir } = of
  const taken = (await foldersPublished(dataDir)).union(await foldersReported(dataDir))
  return await nameRun({ ...of, taken })
}
