import { canProveDeletes, judgeAbsent, type JudgedDeletes } from '../absence.ts'
import { checkOrder, checkOwner, checkPrivacy, type Owner } from '../admission.ts'
import { type Before, changedWarnings, factsThere, lackingOf, lostAfter } from '../coverage.ts'
import type { Publication } from '../destination.ts'
import { PublishedOtherwiseError, refuseIncomplete, repeatedRow } from '../errors.ts'
import { toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { toDriftWarnings } from '../manifest/drift-warnings.ts'
import { isSameRead, type Manifest, type ReadFacts } from '../manifest/manifest.ts'
import { toManifest, toPublishedTable } from '../manifest/to-manifest.ts'
import { checkRows, isSameParts, readLines, rowsOf } from '../parts/read-parts.ts'
import { instant, literal, quote } from '../sql.ts'
import { findExport, findLost, lastExports, lookBack, writeExport, writeHeld } from './exports.ts'
import type { DuckDb } from './open.ts'
import { readRows, withDrift } from './rows.ts'
import { changeTable, checkTable, describe, findOurs, writeOwner } from './tables.ts'

/** A publication in progress. */
interface Publishing {
  db: DuckDb
  publication: Publication
  /** The main table first. */
  tables: readonly WarehouseTable[]
  /** The database file. */
  where: string
}

/**
 * Publishes to an open warehouse: stages the rows in tables of the session, then replaces the records that they bring, each
 * with its child rows, in one transaction. Nobody else can write meanwhile, because the file is locked.
 */
export async function publishTo(
  db: DuckDb,
  { publication, where }: { publication: Publication; where: string },
): Promise<{ manifest: Manifest; fresh: boolean }> {
  const { signal, onStep } = publication
  const publishing = { db, publication, where, tables: publication.tables.map(toWarehouseTable) }
  const existing = await check(publishing)
  if (existing !== undefined) return await publishAgain(publishing, existing)
  const staged = await stage(publishing)
  onStep?.('staged')
  signal?.throwIfAborted()
  await db.run('begin')
  const manifest = await merge(publishing, staged)
  onStep?.('counted')
  signal?.throwIfAborted()
  await db.run('commit')
  return { manifest, fresh: true }
}

/** Refuses what cannot be merged before anything is written, and finds the manifest if this run is published already. */
async function check({ db, publication, tables, where }: Publishing): Promise<Manifest | undefined> {
  const found = await describe(db)
  if (!found.has('_warehouse')) {
    for (const table of tables) checkTable(table, { tables: found, ours: new Map() })
    return undefined
  }
  const [stamp = {}] = await db.all('select workspace, base_url, mode from _warehouse')
  checkOwner({ stamp: stamp as unknown as Owner, publication, where })
  const existing = await findExport(db, publication)
  if (existing !== undefined) return existing
  const published = await lastExports(db)
  checkPrivacy({ published, privacy: publication, where })
  checkOrder({ published, publication, where })
  const ours = await findOurs(db)
  for (const table of tables) checkTable(table, { tables: found, ours })
  return undefined
}

/** Changes nothing but the deletes that were held back when the run was published, if they are allowed now. */
async function publishAgain(publishing: Publishing, existing: Manifest) {
  const { db, publication, where } = publishing
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new PublishedOtherwiseError(
      `${where} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  refuseIncomplete({ missing: await findLost(db, existing), where })
  if (publication.maxDeletes === undefined || (existing.deletes?.heldBack ?? 0) === 0)
    return { manifest: existing, fresh: false }
  const judged = await judgeDeletes(publishing)
  if (judged.deletes === undefined || judged.deletes.heldBack > 0) return { manifest: existing, fresh: false }
  const { warnings: _settled, ...rest } = existing
  const warnings = toDriftWarnings(existing)
  const manifest = { ...rest, deletes: judged.deletes, ...(warnings.length > 0 && { warnings }) }
  await db.run('begin')
  if (judged.marks) await markDeletes(publishing)
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication)
  await db.run('commit')
  return { manifest, fresh: false }
}

interface Staged {
  /** How many rows each table brings. */
  rows: Map<string, number>
  /** With the values that DuckDB's types do not hold. */
  facts: ReadFacts
  warnings: string[]
}

const stagedName = ({ table }: WarehouseTable) => quote(`_staged_${table.name}`)
const idOf = ({ table }: WarehouseTable) => quote(table.key[0]!)

/** Copies the parts into tables of the session. */
async function stage(publishing: Publishing): Promise<Staged> {
  const { db, publication, tables, where } = publishing
  const rows = new Map<string, number>()
  const drift = []
  for (const table of tables) {
    const written = stagedName(table)
    const write = (query: string) => db.run(`create or replace temporary table ${written} as ${query}`)
    const { parts, signal } = publication
    const read = await readRows({ db, table, parts, write, written, where, signal })
    rows.set(table.table.name, read.rows)
    drift.push(read.drift)
  }
  const staged: Staged = { rows, facts: withDrift(publication.facts, drift), warnings: [] }
  if ((publication.facts.repeatedIds ?? []).length > 0) await leaveOutRepeated(publishing, staged)
  await refuseRepeated(publishing)
  return staged
}

/**
 * Leaves out all but one of several records that have one id: the one that was changed last stays, without rows in child
 * tables, because nothing tells whose they are.
 */
async function leaveOutRepeated({ db, publication, tables }: Publishing, staged: Staged): Promise<void> {
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const rows = stagedName(main)
  const id = idOf(main)
  const newest = ['updated', 'created']
    .filter((name) => main.columns.some((column) => column.name === name))
    .map((name) => `${name} desc nulls last`)
  await db.run(`create temporary table _repeated as
    select ${id} as id from ${rows} group by 1 having count(*) > 1`)
  await db.run(`create temporary table _newest as select * from ${rows} where ${id} in (from _repeated)
    qualify row_number() over (partition by ${id} order by ${[...newest, '1'].join(', ')}) = 1`)
  for (const table of tables)
    await db.run(`delete from ${stagedName(table)} where ${idOf(table)} in (from _repeated)`)
  await db.run(`insert into ${rows} from _newest`)
  for (const table of tables) staged.rows.set(table.table.name, await count(db, `from ${stagedName(table)}`))
  const without = children.map(({ table }) => table.name).join(' and ')
  const ids = publication.facts.repeatedIds ?? []
  staged.warnings.push(
    `Of the records with one id, the one that was changed last is here${without === '' ? '' : `, without rows in ${without}`}: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ` and ${ids.length - 5} more` : ''}.`,
  )
}

/** @throws {PartsDamagedError} */
async function refuseRepeated({ db, tables }: Publishing): Promise<void> {
  const [main] = tables as [WarehouseTable]
  const repeated = await count(
    db,
    `from (select 1 from ${stagedName(main)} group by ${idOf(main)} having count(*) > 1)`,
  )
  if (repeated > 0) throw repeatedRow(main.table.name)
}

const count = async (db: DuckDb, from: string): Promise<number> =>
  Number((await db.all(`select count(*) as rows ${from}`))[0]?.['rows'])

async function merge(publishing: Publishing, staged: Staged): Promise<Manifest> {
  const { db, publication, tables } = publishing
  const found = await describe(db)
  if (!found.has('_warehouse')) await writeOwner(db, publication)
  const before = await lookBack(db, publication)
  for (const table of tables) await changeTable(db, table, found)
  const { changes, kept } = await keepNewer(publishing)
  await replaceRecords(publishing)
  const published = publication.tables.map((table) =>
    toPublishedTable(publication, table, {
      rows: staged.rows.get(table.name)!,
      files: [],
      ...(kept.has(table.name) && { kept: kept.get(table.name)! }),
    }),
  )
  const judged = await judgeDeletes(publishing)
  if (judged.marks) await markDeletes(publishing)
  if (kept.size > 0 || lackingOf(before).length > 0) await alignChildren(publishing)
  const rejected = await keepRejected(publishing)
  const manifest = toWarehouseManifest(publishing, {
    staged,
    before,
    judged,
    changes,
    rejected,
    tables: published,
  })
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication)
  return manifest
}

function toWarehouseManifest(
  { publication }: Publishing,
  done: {
    staged: Staged
    before: Before
    judged: JudgedDeletes
    changes: Manifest['changes']
    rejected: number
    tables: Manifest['tables']
  },
): Manifest {
  const { staged, before, judged, changes, rejected, tables } = done
  const { missing } = publication
  const facts = factsThere({ ...publication, facts: staged.facts }, before)
  const lost = lostAfter(publication, tables, before)
  const warnings = [...staged.warnings, ...changedWarnings(publication, tables, before), ...judged.warnings]
  return toManifest({
    publication: { ...publication, facts },
    destination: 'duckdb',
    arrived: {
      tables,
      rejected: { rows: rejected, files: [] },
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(changes && { changes }),
      ...(judged.deletes && { deletes: judged.deletes }),
      ...(Object.keys(lost).length > 0 && { lost }),
      ...(warnings.length > 0 && { warnings }),
    },
  })
}

/**
 * Leaves newer states of records as they are, which a stale replica has sent: takes the staged ones away, and notes that the
 * records were seen.
 * @returns how many rows of each table were left, if any, and how many staged records are new or changed
 */
async function keepNewer({ db, publication, tables }: Publishing) {
  const [main] = tables as [WarehouseTable]
  const target = quote(main.table.name)
  const id = idOf(main)
  const hasUpdated = main.columns.some(({ name, kind }) => name === 'updated' && kind === 'timestamp')
  const compare = (sign: string) => (hasUpdated ? `s.updated ${sign} t.updated` : 'false')
  const joined = `from ${stagedName(main)} s left join ${target} t on t.${id} = s.${id}`
  const [counted = {}] = await db.all(`select count(case when t._run_id is null then 1 end) as new,
    count(case when ${compare('>')} then 1 end) as changed, count(case when ${compare('<')} then 1 end) as stale ${joined}`)
  const changes = { new: Number(counted['new']), changed: Number(counted['changed']) }
  const kept = new Map<string, number>()
  if (counted['stale'] === '0') return { changes, kept }
  await db.run(`create temporary table _stale as select s.${id} as id ${joined} where ${compare('<')}`)
  for (const table of tables) {
    const rows = await db.run(`delete from ${stagedName(table)} where ${idOf(table)} in (from _stale)`)
    if (rows > 0) kept.set(table.table.name, rows)
  }
  await db.run(`update ${target} set _read_at = ${instant(publication.facts.startedAt)}, _deleted_at = null
    where ${id} in (from _stale)`)
  return { changes, kept }
}

/** Replaces the staged records, each with its child rows. */
async function replaceRecords({ db, publication, tables }: Publishing): Promise<void> {
  const [main] = tables as [WarehouseTable]
  const { run, facts } = publication
  for (const table of tables) {
    const target = quote(table.table.name)
    await db.run(
      `delete from ${target} where ${idOf(table)} in (select ${idOf(main)} from ${stagedName(main)})`,
    )
    await db.run(`insert into ${target} by name select *, ${literal(run)} as _run_id,
      ${instant(facts.startedAt)} as _read_at from ${stagedName(table)}`)
  }
}

/** The live records that a read should have seen and did not: it began after all others. */
const absentFrom = ({ facts }: Publication) => `_deleted_at is null and _read_at < ${instant(facts.startedAt)}
  and created <= ${instant(facts.completeThrough)}`

const mostNamed = 10

const noDeletes: JudgedDeletes = { marks: false, deletes: undefined, warnings: [], isProof: false }

/** Counts the records that are gone, and decides whether they may be marked. */
async function judgeDeletes({ db, publication, tables }: Publishing): Promise<JudgedDeletes> {
  if (!canProveDeletes(publication)) return noDeletes
  const [main] = tables as [WarehouseTable]
  const target = quote(main.table.name)
  const which = `from ${target} where ${absentFrom(publication)}`
  const rows = await count(db, which)
  const named =
    rows === 0 ? [] : await db.all(`select ${idOf(main)} as id ${which} order by 1 limit ${mostNamed}`)
  const live = rows === 0 ? 0 : await count(db, `from ${target} where _deleted_at is null`)
  return judgeAbsent(publication, { rows, live, first: named.map(({ id }) => id ?? '') })
}

/** Marks the absent records and their child rows, as of the start of the read. */
async function markDeletes({ db, publication, tables }: Publishing): Promise<void> {
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const target = quote(main.table.name)
  const read = instant(publication.facts.startedAt)
  await db.run(`update ${target} set _deleted_at = ${read} where ${absentFrom(publication)}`)
  for (const child of children)
    await db.run(`update ${quote(child.table.name)} set _deleted_at = ${read} where _deleted_at is null
      and ${idOf(child)} in (select ${idOf(main)} from ${target} where _deleted_at = ${read})`)
}

/**
 * Marks and unmarks all child rows with their records, after records were seen again or somebody changed rows; marks those
 * whose record somebody has removed.
 */
async function alignChildren({ db, publication, tables }: Publishing): Promise<void> {
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const target = quote(main.table.name)
  for (const child of children) {
    const name = quote(child.table.name)
    const isOf = `c.${idOf(child)} = t.${idOf(main)}`
    await db.run(`update ${name} as c set _deleted_at = t._deleted_at from ${target} as t
      where ${isOf} and c._deleted_at is distinct from t._deleted_at`)
    await db.run(`update ${name} as c set _deleted_at = ${instant(publication.facts.startedAt)}
      where c._deleted_at is null and not exists (from ${target} t where ${isOf})`)
  }
}

/** Lines per statement. */
const batch = 200

/** Stores rejected items beside the records and returns their number. */
async function keepRejected({ db, publication, where }: Publishing): Promise<number> {
  const { rejected = [], run, resource, signal } = publication
  let rows = 0
  let values: string[] = []
  const flush = async () => {
    if (values.length > 0) await db.run(`insert into _rejected values ${values.join(', ')}`)
    values = []
  }
  for await (const line of readLines(rejected, { signal })) {
    rows++
    values.push(`(${[run, resource, line].map(literal).join(', ')})`)
    if (values.length === batch) await flush()
  }
  await flush()
  checkRows(rejected, { table: 'rejected', rows, where })
  return rows
}
