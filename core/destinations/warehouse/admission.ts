import { isDeepStrictEqual } from 'node:util'
import type { ValueForm, Publication } from '../destination.ts'
import { NotAdmittedError } from '../errors.ts'
import type { Manifest } from '../manifest.ts'
import { lastExports, ownerTable, toOwner } from './exports.ts'
import type { Database, Tables } from './tables.ts'

// A warehouse accepts only its owner's publications, with values in one form, in the order of their reads.

type Place = Pick<Database, 'where' | 'instead'>

const ownerWords = { workspace: 'workspace', base_url: 'address', mode: 'mode' } as const

/** @throws {NotAdmittedError} the warehouse belongs to another workspace, address or mode */
export async function checkOwner(
  db: Database,
  tables: Tables,
  publication: Parameters<typeof toOwner>[0],
): Promise<void> {
  if (!tables.has(ownerTable)) return
  const [stamp = {}] = await db.all(`select workspace, base_url, mode from ${db.nameOf(ownerTable)}`)
  const owner = toOwner(publication)
  const differences = (['workspace', 'base_url', 'mode'] as const)
    .filter((column) => stamp[column] !== owner[column])
    .map((column) => `${ownerWords[column]} ${stamp[column] ?? 'unknown'}, not ${owner[column]}`)
  if (differences.length > 0)
    throw new NotAdmittedError(
      `${db.where} holds another warehouse (${differences.join('; ')}). Nothing was written: name another file, database or` +
        ' schema.',
    )
}

/**
 * The first publication of a resource decides which columns are left out or hashed, and the first one with hashes decides the
 * key. Otherwise columns would be empty in some rows, and a record with a hashed id would be there twice.
 * @param published the last export of each resource in the warehouse
 * @throws {NotAdmittedError} the values have another form
 */
export function checkPrivacy(
  { where, instead }: Place,
  published: readonly Manifest[],
  privacy: ValueForm,
): void {
  const { resource, hashed, hashedWith } = privacy
  const last = published.find((manifest) => manifest.resource === resource)
  if (last !== undefined && !isDeepStrictEqual(toForm(last), toForm(privacy)))
    throw new NotAdmittedError(
      `${where} has ${resource} ${describeForm(last)}, and this export has them ${describeForm(privacy)}. Nothing was written: export with` +
        ` the --exclude and --hash of before, or ${instead}.`,
    )
  const other = published.find((manifest) => manifest.hashed.length > 0 && manifest.hashedWith !== hashedWith)
  if (hashed.length > 0 && other !== undefined)
    throw new NotAdmittedError(
      `${where} has values that are hashed with another key than those of this export. Nothing was written: set` +
        ` CONNECTOR_HASH_KEY to the key of before and export again, or ${instead}.`,
    )
}

const toForm = ({ excluded, hashed }: ValueForm) => [excluded.toSorted(), hashed.toSorted()]

function describeForm({ excluded, hashed }: ValueForm): string {
  const words = [
    ...(excluded.length > 0 ? [`without ${excluded.join(', ')}`] : []),
    ...(hashed.length > 0 ? [`with ${hashed.join(', ')} hashed`] : []),
  ]
  return words.length === 0 ? 'with all values as they are' : words.join(' and ')
}

/**
 * Reads of a resource are published in the order in which they began. So every row of the warehouse is at least as old as the
 * read that is published, which is all that merging and marking deletes rely on.
 * @param published the last export of each resource in the warehouse
 * @throws {NotAdmittedError}
 */
export function checkOrder(
  { where, instead }: Place,
  published: readonly Manifest[],
  { resource, run, facts }: Pick<Publication, 'resource' | 'run' | 'facts'>,
): void {
  const last = published.find((manifest) => manifest.resource === resource)
  if (last === undefined || Date.parse(facts.startedAt) >= Date.parse(last.startedAt)) return
  throw new NotAdmittedError(
    `${where} has a later read of ${resource}: the run ${last.run} began to read at ${last.startedAt}, and ${run} at` +
      ` ${facts.startedAt}. Nothing was written, because that would bring back older values.` +
      ` Start a new export if something is missing. If the later time is wrong because a clock was, ${instead}.`,
  )
}

/** A read may begin on a worker whose clock is this far behind the one of the last read. */
const clocksDifferMs = 5_000

/**
 * Rejects reads before they begin: those whose values would be rejected, and any while the warehouse has one from the future,
 * because a clock was wrong. `checkOrder` would reject every read until then, each after all of its requests.
 * @throws {NotAdmittedError}
 */
export async function checkBeforeRead(
  db: Database,
  { reads, now }: { reads: readonly ValueForm[]; now: number },
): Promise<void> {
  const { where, instead } = db
  const published = await lastExports(db, await db.describe())
  for (const read of reads) {
    checkPrivacy(db, published, read)
    const last = published.find((manifest) => manifest.resource === read.resource)
    if (last !== undefined && Date.parse(last.startedAt) > now + clocksDifferMs)
      throw new NotAdmittedError(
        `${where} has a read of ${read.resource} from the future: the run ${last.run} began to read at ${last.startedAt}, and` +
          ` now it is ${new Date(now).toISOString()}. Nothing was read, because a read that begins now would be refused as` +
          ` older. If the clock of this worker is behind, correct it; if a clock was ahead, ${instead}.`,
      )
  }
}
