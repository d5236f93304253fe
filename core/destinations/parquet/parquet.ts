import type { Destination } from '../destination.ts'
import { join } from 'node:path'
import { exportsRoot } from '../export-folder.ts'
import { createFileDestination } from '../file-destination.ts'
import { stageParquet } from './stage-parquet.ts'

/**
 * Destination for Parquet files, in a root of their own beside the CSV files: a run may be published as
 * both, and `latest` must not alternate between them.
 */
export function createParquetDestination(): Destination {
  const files = createFileDestination({
    name: 'parquet',
    root: (publication) => join(exportsRoot(publication), 'parquet'),
    stage: stageParquet,
  })
  // Only CSV has a form for Excel.
  return { ...files, publish: (publication) => files.publish({ ...publication, forExcel: false }) }
}
