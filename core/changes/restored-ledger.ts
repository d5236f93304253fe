import { KeyHeldError } from '../state/errors.ts'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { ChangeKind } from './change-kind.ts'
import {
  createClaimJournal,
  type JournalContents,
  type JournaledClaim,
  openClaimJournal,
  readClaims,
} from './claim-journal.ts'
import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { RowClaims } from '../state/ledger/run-queries.ts'
import { transition } from './transitions.ts'
import { type OnKeyHeld, stageKeptChanges } from './staged-changes.ts'

export interface GapOptions {
  ledger: Ledger
  run: string
  space: Omit<KeySpace, 'kind'>
  kind: ChangeKind
  /** The run's folder. */
  folder: string
  /** How many changes the run staged. */
  staged: number
  /** The number of claims in the run's journal as last reported to Temporal. */
  reportedClaims?: number
  /**
   * The journal is a copy that is kept every few seconds: it may lack what a worker claimed that is lost with its folder.
   * The ledger has that, unless it was restored, too.
   */
  isCopy?: boolean
  /** A person says that the journal was restored from a backup, too. */
  everything?: boolean
  onHeld: OnKeyHeld
  signal?: AbortSignal
  now?: () => number
}

/** What the ledger lacked: number of changes, and of changes with missing claims. */
export interface Gap {
  restaged: number
  unknown: number
}

/** Many transitions at once share few commits. */
const rowsAtOnce = 500

/**
 * Compares the ledger with the files of the run and repairs a ledger that was restored from a backup: missing changes are
 * staged again, and changes claimed since the backup become unknown, so that they are looked up or left to a person and
 * never sent blindly. If the journal is lost or was restored as well, nothing shows which changes were sent since then:
 * all open changes become unknown, as if just sent. A ledger that was not restored never lacks a journaled claim.
 *
 * @throws {RunFilesLostError}
 */
export async function closeGap(options: GapOptions): Promise<Gap> {
  const { ledger, run, folder, staged, isCopy = false, now = options.ledger.now } = options
  const rows = await ledger.claimsByRow({ run })
  const found = await readClaims(folder)
  const restaged = Math.max(0, staged - rows.length)
  const outdated = findOutdated({ rows, claims: found?.byRow })
  // What a copy lacks, the ledger may have.
  if (isCopy) await completeJournal({ ledger, run, folder, now })
  const journal = isCopy ? await readClaims(folder) : found
  const isRestored = restaged + outdated.length > 0
  const forgotten = isIncomplete({ ...options, journal, isRestored })
    ? forgottenClaims({ ...options, rows, found })
    : undefined

  let unknown = 0
  if (forgotten !== undefined) unknown += await markOpen({ ledger, run, ...forgotten, outdated, now })
  if (restaged > 0) unknown += await stageAgain({ ...options, rows, found, forgotten, now })
  // Read again: a change that a person had sent after it was closed has just been staged as closed.
  const behind = findOutdated({ rows: await ledger.claimsByRow({ run }), claims: found?.byRow })
  unknown += await markClaims({ ledger, outdated: behind, forgotten, now })
  await completeJournal({ ledger, run, folder, now })
  return { restaged, unknown }
}

/**
 * Whether claims may be missing from both the journal and the ledger. A copy of the journal is kept up only every few
 * seconds, so a ledger that was restored shows that the claims of those seconds may be missing, too.
 */
const isIncomplete = ({
  journal,
  isRestored,
  reportedClaims = 0,
  isCopy = false,
  everything = false,
}: GapOptions & { journal: JournalContents | undefined; isRestored: boolean }): boolean =>
  everything || journal === undefined || journal.recorded < reportedClaims || (isCopy && isRestored)

/**
 * How often each open change may have been claimed and sent without a record: once, or, where the number is a bound, as
 * often as claims are missing in all, because all of them may belong to one change.
 */
function forgottenClaims({
  rows,
  found,
  kind,
  reportedClaims = 0,
  isCopy = false,
}: GapOptions & { rows: readonly RowClaims[]; found: JournalContents | undefined }): Claimed {
  // What a repair has marked counts claims that may belong to another row.
  const known = new Map(rows.map((row) => [row.row, isMarked(row) ? 0 : row.claims]))
  for (const { row, claims } of found?.byRow.values() ?? [])
    known.set(row, Math.max(claims, known.get(row) ?? 0))
  const lost = Math.max(1, reportedClaims - [...known.values()].reduce((sum, claims) => sum + claims, 0))
  return {
    // Of a copy, the ledger must not seem to lack the same claims once more.
    claims: isCopy ? lost : 1,
    // The `attempts` of a recovery are a hard bound.
    sends: kind.confirmedByLookup === true ? lost : 1,
  }
}

type Claimed = Pick<LedgerRow, 'claims' | 'sends'>

/** By a restore, and not looked up since. */
const isMarked = ({ state, outcome, lookups }: RowClaims): boolean =>
  state === 'unknown' && outcome === 'restored' && lookups === 0

/** How often a row was claimed that a journal has, and may have been without one. */
const claimedBy = ({
  claim,
  row = { claims: 0, sends: 0 },
  forgotten = { claims: 0, sends: 0 },
}: {
  claim: JournaledClaim
  row?: Claimed
  forgotten: Claimed | undefined
}) => ({
  claims: claim.claims + forgotten.claims,
  sends: row.sends + claim.claims - row.claims + forgotten.sends,
  sentAt: claim.at,
})

/**
 * Stages again what the ledger lacks, each row as unknown that may have been sent: the missing rows show that the ledger was
 * restored, also to the attempt after one that is lost here. Returns the number of unknown rows.
 */
async function stageAgain({
  rows,
  found,
  forgotten,
  now,
  ...options
}: GapOptions & {
  rows: readonly RowClaims[]
  found: JournalContents | undefined
  forgotten: Claimed | undefined
  now: () => number
}): Promise<number> {
  const { ledger, run } = options
  const unknownSince = now()
  await stageKeptChanges({
    ...options,
    restored: (row) => {
      const claim = found?.byRow.get(row)
      if (claim !== undefined) return { ...claimedBy({ claim, forgotten }), unknownSince }
      return forgotten && { ...forgotten, sentAt: null, unknownSince }
    },
  })
  const before = new Set(rows.map(({ row }) => row))
  const after = await ledger.claimsByRow({ run })
  return after.filter(({ row, state }) => state === 'unknown' && !before.has(row)).length
}

/** Creates the journal unless it is there, and completes it from the ledger. */
async function completeJournal(options: Parameters<typeof addToJournal>[0]): Promise<void> {
  await createClaimJournal(options.folder)
  await addToJournal(options)
}

/**
 * Adds claims that only the ledger has, so that a lost or restored journal is complete again in case the ledger is lost later.
 */
export async function addToJournal({
  ledger,
  run,
  folder,
  now = ledger.now,
}: Pick<GapOptions, 'ledger' | 'run' | 'folder' | 'now'>): Promise<void> {
  const { byRow } = (await readClaims(folder)) ?? { byRow: new Map<number, JournaledClaim>() }
  const lacking = (await ledger.claimsByRow({ run })).filter(
    ({ row, claims }) => claims > (byRow.get(row)?.claims ?? 0),
  )
  if (lacking.length === 0) return
  await using journal = await openClaimJournal(folder)
  await Promise.all(lacking.map(({ row, claims }) => journal.record({ row, claims, at: now() })))
}

/**
 * Marks changes as unknown that the run has claimed without the ledger knowing: done before any change of the run is
 * closed or taken over by another run. Returns the number of rows.
 */
export async function markClaimed(options: {
  ledger: Ledger
  run: string
  /** The run's folder. */
  folder: string
  /** As in `GapOptions`: if such a journal has claims that the ledger lacks, all open changes become unknown. */
  isCopy: boolean
}): Promise<number> {
  const { ledger, run, folder, isCopy } = options
  const journal = await readClaims(folder)
  if (journal === undefined) return 0
  const outdated = findOutdated({ rows: await ledger.claimsByRow({ run }), claims: journal.byRow })
  const open = isCopy && outdated.length > 0 ? await markOpen({ ledger, run, outdated }) : 0
  // Of what it names, a copy may lack the last claim.
  const forgotten = isCopy ? { claims: 1, sends: 1 } : undefined
  return open + (await markClaims({ ledger, outdated, forgotten, now: ledger.now }))
}

/** A change that was claimed more often than the ledger knows. */
interface Outdated {
  row: RowClaims
  claim: JournaledClaim
}

const findOutdated = ({
  rows,
  claims,
}: {
  rows: readonly RowClaims[]
  claims: ReadonlyMap<number, JournaledClaim> | undefined
}): Outdated[] =>
  rows.flatMap((row) => {
    const claim = claims?.get(row.row)
    return claim !== undefined && claim.claims > row.claims ? [{ row, claim }] : []
  })

/**
 * Marks what is outdated as unknown. Of a copy, comes after `markOpen`: until then it shows, also to the next attempt, that
 * the ledger was restored. Returns the number of rows.
 */
async function markClaims({
  ledger,
  outdated,
  forgotten,
  now,
}: {
  ledger: Ledger
  outdated: readonly Outdated[]
  /** As for `markOpen`: what a journal has may have been claimed more often, too. */
  forgotten?: Claimed | undefined
  now: () => number
}): Promise<number> {
  await inBatches(outdated, async ({ row, claim }) => {
    await moveToUnknown({ ledger, row, claimed: claimedBy({ claim, row, forgotten }), now })
  })
  return outdated.length
}

/**
 * Marks all open changes of a run as unknown, in one write: one that looks unsent may have been sent, and one that was sent
 * may have been reconciled and sent again. Of changes without a key, what holds it becomes unknown, too. Returns the
 * number of rows.
 */
export async function markOpen({
  ledger,
  run,
  sends = 1,
  claims = 1,
  outdated = [],
  now = ledger.now,
}: {
  ledger: Ledger
  run: string
  /** How often each may have been sent, and claimed, without a record of it. */
  sends?: number
  claims?: number
  /** Changes that are left to `markClaims`. */
  outdated?: readonly Outdated[]
  now?: () => number
}): Promise<number> {
  const except = outdated.map(({ row }) => row.row)
  const marked = await ledger.markRestored({ run, sends, claims, at: now(), except })
  // Since the backup, the run may have had the key again that another one holds in the ledger, and sent the change.
  for await (const row of ledger.rows({ run, state: 'unknown' })) {
    const { claims: claimed, sends: sent } = row
    if (row.holdsKey === 0)
      await moveToUnknown({ ledger, row, claimed: { claims: claimed, sends: sent }, now })
  }
  return marked
}

/**
 * Moves a row to unknown that may have been sent without the ledger knowing, whatever state the ledger has for it. Such
 * a send may still take effect, as if it were made now, so earlier lookups prove nothing. If another run has taken the
 * key of a closed row, that run must not send blindly either.
 */
export async function moveToUnknown({
  ledger,
  row,
  claimed = { claims: row.claims + 1, sends: row.sends + 1 },
  now,
}: {
  ledger: Ledger
  row: Pick<LedgerRow, 'id' | 'claims' | 'sends'>
  /** Its claims as far as known; default: one more than the ledger has. */
  claimed?: Pick<LedgerRow, 'claims' | 'sends'> & Pick<RowPatch, 'sentAt'>
  now: () => number
}): Promise<boolean> {
  const patch = { ...claimed, unknownSince: now(), lookups: 0, answeredAt: null }
  const unknown = { ledger, row, to: 'unknown', by: 'restore', outcome: 'restored' } as const
  try {
    return await transition({ ...unknown, patch: { ...patch, holdsKey: 1 } })
  } catch (error) {
    if (!(error instanceof KeyHeldError)) throw error
  }
  for (const holder of await holdersOfKey({ ledger, row }))
    if (holder.state === 'staged') await moveToUnknown({ ledger, row: holder, now })
  return await transition({ ...unknown, patch: { ...patch, holdsKey: 0 } })
}

/** The changes that hold the key of a row: the row itself, or changes of other runs. */
export async function holdersOfKey({ ledger, row }: { ledger: Ledger; row: Pick<LedgerRow, 'id'> }) {
  const change = await ledger.byId(row)
  if (change === undefined) return []
  const { workspace, mode, kind, key } = change
  return await ledger.holders({ workspace, mode, kind, keys: [key] })
}

async function inBatches<T>(rows: readonly T[], write: (row: T) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < rows.length; from += rowsAtOnce)
    await Promise.all(rows.slice(from, from + rowsAtOnce).map(write))
}
