import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'

const folderOf = (dataDir: string) => join(dataDir, 'exports', 'reports')

type Ending = '.json' | '.html' | '.missing.csv'

/** The path of an export's report, which outlives the parts of its run. */
export const reportFile = (of: { dataDir: string; run: string; ending: Ending }): string =>
  join(folderOf(of.dataDir), `${toFileName(of.run)}${of.ending}`)

/** The folder names of all runs that have a report. */
export async function foldersReported(of: {
  dataDir: string
  shared: SharedFolder
}): Promise<ReadonlySet<string>> {
  const names = await of.shared.list(folderOf(of.dataDir))
  return new Set(names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [])))
}
