import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'

const folderOf = (dataDir: string) => join(dataDir, 'exports', 'reports')

type Ending = '.json' | '.html' | '.missing.csv'

/** The path of an export's report, which outlives the parts of its run. */
export const reportFile = (of: { dataDir: string; run: string; ending: Ending }): string =>
  join(folderOf(of.dataDir), `${toFileName(of.run)}${of.ending}`)

/** The folder names of all runs that have a report. */
export async function foldersReported(dataDir: string): Promise<ReadonlySet<string>> {
  const names = await readdir(folderOf(dataDir)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return new Set(names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : [])))
}
