// node publish-child.ts <file> : publishes what the file says, and is killed at a step if it says so. A process of
// its own, so that a test can take it away in the middle. Prints the error's name and message, if there is one.
import { readFile } from 'node:fs/promises'
import type { Destination, Publication, PublishStep } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { createCsvDestination } from '../../../core/destinations/files/csv.ts'
import { createParquetDestination } from '../../../core/destinations/files/parquet.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'

export interface ChildTask {
  to: 'csv' | 'parquet' | { duckdb: string } | { postgres: string }
  publication: Publication
  killAt?: PublishStep
}

const task = JSON.parse(await readFile(process.argv[2]!, 'utf8')) as ChildTask
const onStep = (step: PublishStep) => {
  if (step === task.killAt) process.kill(process.pid, 'SIGKILL')
}
try {
  await toDestination(task.to).publish({ ...task.publication, onStep })
  console.log('published')
} catch (error) {
  const { name, message } = error as Error
  console.log(`${name}: ${message}`)
}

function toDestination(to: ChildTask['to']): Destination {
  if (to === 'csv') return createCsvDestination()
  if (to === 'parquet') return createParquetDestination()
  return 'duckdb' in to
    ? createDuckDbDestination({ folder: to.duckdb })
    : createPostgresDestination({ url: to.postgres })
}
