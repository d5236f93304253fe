import { isDeepStrictEqual } from 'node:util'
import type { Publication } from '../destination.ts'
import { ForeignWarehouseError } from './errors.ts'
import { toManifests } from './export-row.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from './sql.ts'
import { exportsTable } from './warehouse-owner.ts'

type Privacy = Pick<Publication, 'resource' | 'excluded' | 'hashed' | 'hashedWith'>

/**
 * Checks whether a warehouse may take values in this form. Its first publication of a resource decides which columns are left
 * out or hashed, and its first one with hashes decides the key: else columns would be empty in some rows, and a record with
 * its hash as its id would be there twice.
 * @throws {ForeignWarehouseError}
 */
export async function checkPrivacy(
  session: WarehouseSession,
  { privacy, tables, where }: { privacy: Privacy; tables: ReadonlyMap<string, unknown>; where: string },
): Promise<void> {
  if (!tables.has(exportsTable)) return
  const { resource, hashedWith } = privacy
  const exports = `${quote(session.schema)}.${quote(exportsTable)}`
  // An earlier version noted the names as they were asked for, and no absent fields.
  const [last] = toManifests(
    await session.all(`select manifest from (
      select manifest from ${exports} where resource = ${literal(resource)} order by published_at desc, run desc limit 1
    ) last where cast(manifest as text) like '%"absentFields"%'`),
  )
  if (last !== undefined && !isDeepStrictEqual(toForm(last), toForm(privacy)))
    throw new ForeignWarehouseError(
      `${where} has ${resource} ${toWords(last)}, and this export has them ${toWords(privacy)}. Nothing was written: export with` +
        ` the --exclude and --hash of before, or ${elsewhere}.`,
    )
  if (privacy.hashed.length === 0) return
  const [hashed] = toManifests(
    await session.all(`select manifest from ${exports}
      where cast(manifest -> 'hashed' as text) <> '[]' order by published_at desc, run limit 1`),
  )
  if (hashed === undefined || hashed.hashedWith === hashedWith) return
  throw new ForeignWarehouseError(
    `${where} has values that are hashed with another key than those of this export. Nothing was written: set` +
      ` CONNECTOR_HASH_KEY to the key of before and export again, or ${elsewhere}.`,
  )
}

const elsewhere = 'name another schema (for DuckDB, move the file away)'

const toForm = ({ excluded, hashed }: Privacy) => [excluded.toSorted(), hashed.toSorted()]

function toWords({ excluded, hashed }: Privacy): string {
  const words = [
    ...(excluded.length > 0 ? [`without ${excluded.join(', ')}`] : []),
    ...(hashed.length > 0 ? [`with ${hashed.join(', ')} hashed`] : []),
  ]
  return words.length === 0 ? 'with all values as they are' : words.join(' and ')
}
