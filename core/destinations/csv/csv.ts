import { isDeepStrictEqual } from 'node:util'
import type { Destination } from '../destination.ts'
import { exportsRoot } from '../export-folder.ts'
import { createFolderDestination } from '../folder-destination.ts'
import { stageFiles } from './stage-files.ts'

/**
 * Destination for CSV files; `createFolderDestination` describes the folders and how they become visible.
 */
export const createCsvDestination = (): Destination =>
  createFolderDestination({
    name: 'csv',
    root: exportsRoot,
    stage: stageFiles,
    async isSame(publication, { tables, rejected, missing, dialect }) {
      const again = await stageFiles(publication, undefined)
      return isDeepStrictEqual(again, { tables, rejected, ...(missing && { missing }), dialect })
    },
  })
