import type { Command } from 'commander'
import { z } from 'zod'
import { checkCertificate, findUnchecked } from '../../core/exports/certificate-check.ts'
import { schemaInput } from '../../core/exports/input.ts'
import {
  type Verified,
  verifyExport,
  verifyStoredExport,
  verifyWarehouse,
} from '../../core/destinations/files/verify.ts'
import type { Comparison, Warehouse } from '../../core/destinations/destination.ts'
import type { Manifest } from '../../core/destinations/manifest.ts'
import { isFileDestination, warehouseNames, type WarehouseName } from '../../core/destinations/names.ts'
import { followPointer } from '../../core/destinations/files/pointers.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { parseBucketAddress } from '../../core/storage/bucket-store.ts'
import { openBucket } from '../../worker/files.ts'
import { formatCount, formatCountOf } from '../../core/runs/view/format.ts'
import { warehouses } from '../../worker/destinations.ts'
import { exitCodes, RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, addInputOptions, exportFolder, processPlaces } from './options.ts'

const verifyInput = z.object({
  against: z.enum(warehouseNames).optional().meta({
    flag: '--against <warehouse>',
    help: 'check its tables, row by row, instead of the certificate',
  }),
  schema: schemaInput.optional().meta({
    flag: '--schema <name>',
    help: 'the schema in PostgreSQL',
    otherwise: 'billing; in test mode billing_test',
  }),
})

export function configure(command: Command, terminal: Terminal): void {
  command.argument('<folder>', 'folder with the manifest, or its address in a bucket')
  addInputOptions(command, verifyInput).action(
    async (folder: string, { against, schema }: z.output<typeof verifyInput>) => {
      if (against === undefined && schema !== undefined)
        throw new UsageError('--schema is for --against postgres.')
      if (folder.startsWith('s3:')) {
        if (against === undefined) return verifyInBucket({ address: folder, terminal })
        throw new UsageError('--against needs the files in a folder; copy the export into one first.')
      }
      const path = await exportFolder(folder)
      if (against === undefined)
        return tell({ ...(await verify(createFolderStore(path), '')), terminal, path })
      const destination = await openWarehouse(against, schema)
      const verified = await verifyExport(path)
      const { manifest, problems } = verified
      if (manifest === undefined || problems.length > 0) return tell({ ...verified, terminal, path })
      const compared = await verifyWarehouse({ destination, manifest, folder: path, schema })
      const document = { warehouse: against, tables: compared.tables }
      const isCompared = manifest.records === 0 || compared.tables.some((table) => table.compared > 0)
      const where = isCompared
        ? toWords(compared)
        : `matches its manifest, but ${compared.where} has no row of it left to compare: later runs have written them again`
      tell({ ...compared, manifest, terminal, path, document, where, isProof: isCompared })
    },
  )
  addExamples(command, 'run', {
    'verify data/exports/customers/latest': 'the checksums and the certificate of the newest export',
    'verify s3://bucket/exports/customers/latest-proven': 'the same, in a bucket',
    'verify data/exports/customers/latest --against duckdb': 'the tables of a warehouse, row by row',
  })
}

async function verifyInBucket(of: { address: string; terminal: Terminal }): Promise<void> {
  const { terminal } = of
  const address = parseBucketAddress(of.address)
  if (address === undefined || address.prefix === '')
    throw new UsageError(
      `${of.address} is not the address of an export; write s3://bucket/prefix/exports/....`,
    )
  // The whole address is given, so it may be in any bucket.
  const { s3 } = processPlaces()
  const store = openBucket({ bucket: address.bucket, prefix: '' }, s3)
  const folder = await followPointer(store, address.prefix)
  tell({ ...(await verify(store, folder)), terminal, path: store.locate(folder) })
}

/** The files as they were published, and the argument that the export is complete. */
async function verify(
  store: FileStore,
  path: string,
): Promise<Verified & { note?: string; document?: object }> {
  const { manifest, problems } = await verifyStoredExport(store, path)
  if (manifest === undefined || problems.length > 0) return { manifest, problems }
  const problem = await checkCertificate(store, path, manifest)
  if (problem !== undefined) return { manifest, problems: [problem] }
  const unchecked = findUnchecked(store, manifest)
  const what = unchecked.map((name) => uncheckedWords[name]).join(', and ')
  return {
    manifest,
    problems: [],
    document: { unchecked },
    ...(unchecked.length > 0 && {
      note: ` Not checked, because ${isFileDestination(manifest.destination) ? 'it is not plain CSV' : 'the rows of a warehouse are not beside it'}: ${what}.`,
    }),
  }
}

const uncheckedWords = {
  rows: 'whether its rows are those that were read',
  totals: 'whether they add up to its totals',
}

async function openWarehouse(name: WarehouseName, schema: string | undefined): Promise<Warehouse> {
  if (name !== 'postgres' && schema !== undefined)
    throw new UsageError(`--schema is for --against postgres; ${name} has one schema.`)
  // Each engine takes tens of megabytes, so only the requested one is loaded.
  const open = warehouses[name](processPlaces())
  if (open === undefined)
    throw new RefusedError('WAREHOUSE_URL is not set.', {
      hint: 'Set it to postgres://user:password@host:5432/database.',
    })
  return await open()
}

function toWords({ tables, where }: Comparison): string {
  const counts = tables.map(({ name, compared, newer }) => {
    const others = newer === 0 ? '' : `, ${formatCount(newer)} by other runs`
    return `${name} ${formatCountOf(compared, 'rows')} compared${others}`
  })
  return `matches its manifest, and ${where} has the same rows (${counts.join('; ')})`
}

function tell(options: {
  terminal: Terminal
  path: string
  manifest: Manifest | undefined
  problems: readonly string[]
  document?: object
  /** Describe the export; shown if there are no problems. */
  where?: string
  note?: string
  /** Whether something was compared. */
  isProof?: boolean
}): void {
  const { terminal, path, manifest, problems, document, where = 'matches its manifest', note = '' } = options
  const { isProof = true } = options
  const whole = `${path} ${where}: ${formatCountOf(manifest?.records ?? 0, 'records')} of ${manifest?.resource}, ${manifest?.verdict}.${note}`
  terminal.result({
    document: { folder: path, verdict: manifest?.verdict, ...document, problems },
    text: problems.length === 0 ? whole : problems.join('\n'),
  })
  if (problems.length > 0) process.exitCode = exitCodes.failed
  else if (manifest?.verdict === 'unproven' || !isProof) process.exitCode = exitCodes.unproven
}
