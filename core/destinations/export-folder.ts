import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { Publication } from './destination.ts'

/** The links beside the runs' folders. */
export type PointerName = 'latest' | 'latest-proven'

type Named = Pick<Publication, 'run' | 'mode' | 'filters' | 'capped' | 'forExcel'>

/** Where published exports lie; test data in a folder of its own. */
export const exportsRoot = (options: { folder: string; testMode: boolean }) =>
  options.testMode ? join(options.folder, 'test') : options.folder

/**
 * The folder of a run's export of a resource: the run's name, and what keeps it from being the whole list as
 * programs read it.
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
 * Which links move to a run: `latest` stands for the whole list, `latest-proven` for a proof of it too. Programs
 * follow them, and one sheet made for Excel must not change the delimiter under them.
 */
export function pointersOf(publication: Named & Pick<Publication, 'facts'>): PointerName[] {
  const { mode, filters, capped, forExcel, facts } = publication
  if (mode !== 'full' || capped || forExcel || Object.keys(filters).length > 0) return []
  return facts.verdict === 'proven' ? ['latest', 'latest-proven'] : ['latest']
}
