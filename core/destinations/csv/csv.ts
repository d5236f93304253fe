import type { Destination } from '../destination.ts'
import { exportsRoot } from '../export-folder.ts'
import { createFileDestination } from '../file-destination.ts'
import { stageFiles } from './stage-files.ts'

/**
 * Destination for CSV files; `createFileDestination` describes the folders and how they become visible.
 */
export const createCsvDestination = (): Destination =>
  createFileDestination({
    name: 'csv',
    root: exportsRoot,
    stage: stageFiles,
  })
