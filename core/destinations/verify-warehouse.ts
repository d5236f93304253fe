import { verifyExport } from './csv/verify-export.ts'
import type { Comparison, Warehouse } from './destination.ts'
import type { Manifest } from './manifest/manifest.ts'

export type VerifiedWarehouse = Comparison & { manifest: Manifest | undefined }

/**
 * Checks the files of an export in CSV against their manifest, and then the tables of a warehouse against the files.
 * @throws {UnreachableWarehouseError | BusyWarehouseError | WarehouseRefusedError}
 */
export async function verifyWarehouse(options: {
  destination: Pick<Warehouse, 'compare'>
  /** The export's folder. */
  folder: string
  schema?: string | undefined
  signal?: AbortSignal | undefined
}): Promise<VerifiedWarehouse> {
  const { destination, folder, schema, signal } = options
  const { manifest, problems } = await verifyExport(folder)
  const refuse = (sentences: string[]) => ({ manifest, problems: sentences, tables: [], where: '' })
  if (manifest === undefined || problems.length > 0) return refuse(problems)
  if (manifest.destination !== 'csv' || manifest.dialect?.formulaGuard === true)
    return refuse([`${folder} holds no plain CSV files; a warehouse is compared with an export to csv.`])
  return { manifest, ...(await destination.compare({ manifest, folder, schema, signal })) }
}
