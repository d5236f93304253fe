import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { Publication } from './destination.ts'

/** The links beside the run folders. */
export type PointerName = 'latest' | 'latest-proven'

type Named = Pick<Publication, 'run' | 'mode' | 'filters' | 'capped' | 'forExcel'>

/** The folder of published exports; test data has its own. */
export const exportsRoot = (options: { folder: string; testMode: boolean }) =>
  options.testMode ? join(options.folder, 'test') : options.folder

/**
 * The folder name of a run's export of a resource: the run's name, plus whatever makes the export other than
 * the whole list in the standard dialect.
 */
export function folderName({ run, mode, filters, capped, forExcel }: Named): string {
  const marks = [
    ...(mode === 'incremental' ? ['-incremental'] : []),
    ...(Object.keys(filters).length > 0 ? ['-filtered'] : []),
    ...(capped ? ['-capped'] : []),
    ...(forExcel ? ['-excel'] : []),
  ]
  return `${toFileName(run)}${marks.join('')}`
}

/**
 * The links that move to a run: `latest` for the whole list, `latest-proven` if it is also proven. Programs
 * follow them, so a sheet made for Excel must not change the delimiter under them.
 */
export function pointersOf(publication: Named & Pick<Publication, 'facts'>): PointerName[] {
  const { mode, filters, capped, forExcel, facts } = publication
  if (mode !== 'full' || capped || forExcel || Object.keys(filters).length > 0) return []
  return facts.verdict === 'proven' ? ['latest', 'latest-proven'] : ['latest']
}
