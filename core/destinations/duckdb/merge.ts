import type { Publication } from '../destination.ts'
import { repeatedRow } from '../errors.ts'
import { type WarehouseTable, instant, literal, quote, stagedName as stagedNameOf } from '../layout.ts'
import { idOf, type Merging } from '../warehouse/merge.ts'
import type { DuckDb } from './open.ts'
import { readRows, withDrift } from './rows.ts'

/** A publication in progress. */
interface Publishing {
  db: DuckDb
  publication: Publication
  /** The main table first. */
  tables: readonly WarehouseTable[]
}

/** How DuckDB stages, locks and merges. Nobody else can write, because the file is locked. */
export const toMerging = (db: DuckDb, publication: Publication, where: string): Merging => ({
  async stage(tables) {
    const { parts, signal } = publication
    const rows = new Map<string, number>()
    const drift = []
    for (const table of tables) {
      const written = stagedName(table)
      const write = (query: string) => db.run(`create or replace temporary table ${written} as ${query}`)
      const read = await readRows({ db, table, parts, write, written, where, signal })
      rows.set(table.table.name, read.rows)
      drift.push(read.drift)
    }
    return { rows, facts: withDrift(publication.facts, drift) }
  },
  lock: async () => void (await db.run('begin')),
  valueOf: ({ name }) => `s.${quote(name)}`,
  async replace(tables) {
    const publishing = { db, publication, tables }
    await refuseRepeated(publishing)
    await replaceRecords(publishing)
  },
})

const stagedName = ({ table }: WarehouseTable) => stagedNameOf(table.name)

/**
 * Without a key, nothing else would refuse them.
 * @throws {PartsDamagedError}
 */
async function refuseRepeated({ db, tables }: Publishing): Promise<void> {
  const [main] = tables as [WarehouseTable]
  const repeated = await db.all(
    `select 1 from ${stagedName(main)} group by ${idOf(main)} having count(*) > 1 limit 1`,
  )
  if (repeated.length > 0) throw repeatedRow(main.table.name)
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
