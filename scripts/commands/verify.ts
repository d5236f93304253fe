import type { Command } from 'commander'
import { z } from 'zod'
import { checkCertificate } from '../../core/exports/certificate-check.ts'
import { publishingFields } from '../../core/exports/input.ts'
import { type Verified, verifyStoredExport } from '../../core/destinations/files/verify.ts'
import type { Warehouse } from '../../core/destinations/destination.ts'
import type { Manifest } from '../../core/destinations/manifest.ts'
import { warehouseNames, type WarehouseName } from '../../core/destinations/names.ts'
import { verifyWarehouse, type VerifiedWarehouse } from '../../core/destinations/files/verify.ts'
import { followPointer } from '../../core/destinations/files/pointers.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { parseBucketAddress } from '../../core/storage/bucket-store.ts'
import { openBucket } from '../../worker/files.ts'
import { warehouses } from '../../worker/destinations.ts'
import { readPlaces } from '../../worker/settings/settings.ts'
import { exitCodes, RefusedError, UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, addInputOptions, callersPath } from './options.ts'

export function configureVerify(command: Command, terminal: Terminal): void {
  command
    .argument('<folder>', 'folder with the manifest, or its address in a bucket')
    .action(async (folder: string) => {
      if (folder.startsWith('s3:')) return verifyInBucket({ address: folder, terminal })
      const path = callersPath(folder)
      tell({ ...(await verify(createFolderStore(path), '')), terminal, path })
    })
  addExamples(command, 'run', {
    'verify data/exports/customers/latest': 'the checksums and the certificate of the newest export',
    'verify s3://bucket/exports/customers/latest-proven': 'the same, in a bucket',
  })
}

const compareInput = z.object({
  to: z.enum(warehouseNames).meta({ flag: '--to <warehouse>', help: 'the warehouse to compare' }),
  schema: publishingFields.schema,
})

export function configureCompare(command: Command, terminal: Terminal): void {
  command.argument('<folder>', 'folder with the manifest')
  addInputOptions(command, compareInput).action(
    async (folder: string, { to: warehouse, schema }: Partial<z.output<typeof compareInput>>) => {
      if (warehouse === undefined)
        throw new UsageError(`Name the warehouse: --to ${warehouseNames.join(' or ')}.`)
      if (folder.startsWith('s3:'))
        throw new UsageError('compare needs the files in a folder; copy the export into one first.')
      const path = callersPath(folder)
      const destination = await openWarehouse(warehouse, schema)
      const verified = await verifyWarehouse({ destination, folder: path, schema })
      const document = { warehouse, tables: verified.tables }
      tell({ ...verified, terminal, path, document, where: toWords(verified) })
    },
  )
  addExamples(command, 'run', {
    'compare data/exports/customers/latest --to duckdb': 'id by id and column by column',
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
  const { s3 } = readPlaces({ env: process.env, cwd: process.cwd() })
  const store = openBucket({ bucket: address.bucket, prefix: '' }, s3)
  const folder = await followPointer(store, address.prefix)
  tell({ ...(await verify(store, folder)), terminal, path: store.locate(folder) })
}

/** The files as they were published, and the argument that the export is complete. */
async function verify(store: FileStore, path: string): Promise<Verified> {
  const { manifest, problems } = await verifyStoredExport(store, path)
  if (manifest === undefined || problems.length > 0) return { manifest, problems }
  const problem = await checkCertificate(store, path, manifest)
  return { manifest, problems: problem === undefined ? [] : [problem] }
}

async function openWarehouse(name: WarehouseName, schema: string | undefined): Promise<Warehouse> {
  if (name !== 'postgres' && schema !== undefined)
    throw new UsageError(`--schema is for --to postgres; ${name} has one schema.`)
  // Each engine takes tens of megabytes, so only the requested one is loaded.
  const open = warehouses[name](readPlaces({ env: process.env, cwd: process.cwd() }))
  if (open === undefined)
    throw new RefusedError('WAREHOUSE_URL is not set.', {
      hint: 'Set it to postgres://user:password@host:5432/database.',
    })
  return await open()
}

function toWords({ tables, where }: VerifiedWarehouse): string {
  const counts = tables.map(({ name, compared, newer }) => {
    const others = newer === 0 ? '' : `, ${newer} by other runs`
    return `${name} ${compared} ${compared === 1 ? 'row' : 'rows'} compared${others}`
  })
  return `matches its manifest, and ${where} has the same rows (${counts.join('; ')})`
}

function tell(options: {
  terminal: Terminal
  path: string
  manifest: Manifest | undefined
  problems: readonly string[]
  document?: object
  /** Describes the export; shown if there are no problems. */
  where?: string
}): void {
  const { terminal, path, manifest, problems, document, where = 'matches its manifest' } = options
  const whole = `${path} ${where}: ${manifest?.records} records of ${manifest?.resource}, ${manifest?.verdict}.`
  terminal.result({
    document: { folder: path, verdict: manifest?.verdict, ...document, problems },
    text: problems.length === 0 ? whole : problems.join('\n'),
  })
  if (problems.length > 0) process.exitCode = exitCodes.failed
  else if (manifest?.verdict === 'unproven') process.exitCode = exitCodes.unproven
}
