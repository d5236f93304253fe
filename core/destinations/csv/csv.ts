import { isDeepStrictEqual } from 'node:util'
import type { Destination } from '../destination.ts'
import { exportsRoot } from '../export-folder.ts'
import { createFolderDestination } from '../folder-destination.ts'
import { stageFiles } from './stage-files.ts'

/** CSV files; see `createFolderDestination` for where they lie and how they appear. */
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
