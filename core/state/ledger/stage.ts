import type { Insertable, Kysely } from 'kysely'
import { RunTakenError } from '../errors.ts'
import { inValues } from '../sql-list.ts'
import { type KeySpace, createKeyReads } from './key-queries.ts'
import type { LedgerRow } from './row.ts'
import type { ChangeTable, StateTables } from '../tables.ts'

export interface NewChange {
  row: number
  key: string
  /** JSON text exactly as it will be sent. */
  body: string
  breakerKey?: string
  notBefore?: number
  /** Attempts of earlier runs that count here, too. */
  attemptsBefore?: number
  /** Facts from before, as JSON text of the change kind. */
  before?: string
  /** For a change that is closed from the start: invalid, left out on purpose, or parked. */
  closed?: { state: 'rejected' | 'dropped' | 'parked'; outcome: string; error: string }
  /** Requested by a person: stage it although an earlier run has done it. */
  sendAgain?: boolean
}

/** When a key that is done may be staged again without a person's request. */
export type Repeats = 'never' | 'otherBody' | 'always'

export interface StageResult {
  /** Newly staged, or closed from the start. */
  staged: number
  /** Already staged by this run, which resumes. */
  already: number
  /** Not staged: another change holds the key. */
  held: { row: number; key: string; by: LedgerRow }[]
}

/**
 * Stages changes of a run, all in one durable write; a few thousand at a time keep memory flat. Staging the same changes
 * again changes nothing.
 * @throws {RunTakenError} if the run already has a row with other contents
 */
export type Stage = (
  options: KeySpace & { run: string; repeats: Repeats; changes: readonly NewChange[] },
) => Promise<StageResult>

/** Each row has 20 columns, and SQLite allows 32,766 parameters. */
const rowsAStatement = 500

export function createStage({ db }: { db: Kysely<StateTables> }): Stage {
  return (options) => db.transaction().execute((transaction) => stage({ ...options, db: transaction }))
}

async function stage({
  db,
  run,
  repeats,
  changes,
  ...space
}: Parameters<Stage>[0] & { db: Kysely<StateTables> }): Promise<StageResult> {
  const stagedRows = await rowsOfRun({ db, run, changes })
  const fresh = changes.filter((change) => {
    const before = stagedRows.get(change.row)
    if (before === undefined) return true
    if (before.kind !== space.kind || before.key !== change.key || before.body !== change.body)
      throw new RunTakenError({ run, row: change.row })
    return false
  })
  const keys = fresh.filter((change) => change.closed === undefined).map(({ key }) => key)
  const holders = new Map<string, LedgerRow>()
  for (const row of await createKeyReads({ db }).holders({ ...space, keys })) holders.set(row.key, row)

  const result: StageResult = { staged: 0, already: changes.length - fresh.length, held: [] }
  const values: Insertable<ChangeTable>[] = []
  for (const change of fresh) {
    const by = change.closed === undefined ? holders.get(change.key) : undefined
    if (by !== undefined && !mayRepeat({ by, change, repeats })) {
      result.held.push({ row: change.row, key: change.key, by })
      continue
    }
    values.push(toInsert({ run, space, change, generation: by === undefined ? 0 : by.generation + 1 }))
  }
  for (let from = 0; from < values.length; from += rowsAStatement)
    await db
      .insertInto('changes')
      .values(values.slice(from, from + rowsAStatement))
      .execute()
  return { ...result, staged: values.length }
}

async function rowsOfRun({
  db,
  run,
  changes,
}: {
  db: Kysely<StateTables>
  run: string
  changes: readonly NewChange[]
}) {
  const rows = await db
    .selectFrom('changes')
    .select(['row', 'kind', 'key', 'body'])
    .where('run', '=', run)
    .where('row', 'in', inValues(changes.map(({ row }) => row)))
    .execute()
  return new Map(rows.map((row) => [row.row, row]))
}

/** Whether a change may be staged although another one holds its key. */
export function mayRepeat({
  by,
  change,
  repeats,
}: {
  by: LedgerRow
  change: Pick<NewChange, 'sendAgain' | 'body'>
  repeats: Repeats
}): boolean {
  if (by.state !== 'done') return false
  if (change.sendAgain === true || repeats === 'always') return true
  return repeats === 'otherBody' && by.body !== change.body
}

function toInsert({
  run,
  space,
  change,
  generation,
}: {
  run: string
  space: KeySpace
  change: NewChange
  generation: number
}): Insertable<ChangeTable> {
  return {
    run,
    row: change.row,
    ...space,
    key: change.key,
    generation,
    // A change that is only reported will never be sent, so it does not hold its key.
    holds_key: change.closed === undefined ? 1 : 0,
    breaker_key: change.breakerKey ?? '',
    body: change.body,
    state: change.closed?.state ?? 'staged',
    claims: 0,
    sends: 0,
    attempts: change.attemptsBefore ?? 0,
    not_before: change.notBefore ?? 0,
    outcome: change.closed?.outcome ?? null,
    error: change.closed?.error ?? null,
    lookups: 0,
    before: change.before ?? null,
  }
}
