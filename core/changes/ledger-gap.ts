import { KeyHeldError } from '../state/errors.ts'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { ChangeKind } from './change-kind.ts'
import { createClaimJournal, type JournaledClaim, openClaimJournal, readClaims } from './claim-journal.ts'
import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { RowClaims } from '../state/ledger/run-queries.ts'
import { move } from './transitions.ts'
import { type OnHeld, stageKeptChanges } from './staged-changes.ts'

export interface GapOptions {
  ledger: Ledger
  run: string
  space: Omit<KeySpace, 'kind'>
  kind: ChangeKind
  /** The run's folder. */
  folder: string
  /** How many changes the run staged. */
  staged: number
  /** How many claims the run was last told its journal has: Temporal keeps that number. */
  told?: number
  /** A person says that the journal was put back as well. */
  everything?: boolean
  onHeld: OnHeld
  signal?: AbortSignal
  now?: () => number
}

/** What the ledger lacked: changes, and claims of changes. */
export interface Gap {
  restaged: number
  unknown: number
}

/** So many moves share few commits. */
const rowsAtOnce = 500

/**
 * Compares the ledger with what lies beside the run, and fixes a ledger that was put back from a backup: changes that
 * it lacks are staged again, and what was claimed since the backup becomes unknown, so that it is looked up or left to
 * a person and never sent blindly. Where the journal is lost or was put back as well, nothing tells which changes were
 * sent since, or sent again: all that is open becomes unknown, as if just sent. A ledger that was not put back is never
 * behind its journal.
 *
 * @throws {RunFilesLostError}
 */
export async function closeGap(options: GapOptions): Promise<Gap> {
  const { ledger, run, kind, folder, staged, told = 0, everything = false, now = Date.now } = options
  const rows = await ledger.claimsByRow({ run })
  const restaged = Math.max(0, staged - rows.length)
  if (restaged > 0) await stageKeptChanges(options)
  const journal = await readClaims(folder)
  let unknown = await markClaims({ ledger, run, now, claims: journal?.byRow ?? new Map() })
  if (everything || journal === undefined || journal.recorded < told) {
    const known = (await ledger.claimsByRow({ run })).reduce((sum, { claims }) => sum + claims, 0)
    // All claims that nobody knows any more may have been of one subscription, and `attempts` is a hard bound.
    const sends = kind.confirmedByLookup === true ? Math.max(1, told - known) : 1
    unknown += await markOpen({ ledger, run, sends, now })
  }
  if (journal === undefined) await createClaimJournal(folder)
  await addToJournal({ ledger, run, folder, now })
  return { restaged, unknown }
}

/**
 * Records the claims that only the ledger knows: a journal that was lost or put back is whole again, before the ledger
 * is, too.
 */
async function addToJournal({
  ledger,
  run,
  folder,
  now,
}: Pick<GapOptions, 'ledger' | 'run' | 'folder'> & { now: () => number }): Promise<void> {
  const { byRow } = (await readClaims(folder)) ?? { byRow: new Map<number, JournaledClaim>() }
  const lacking = (await ledger.claimsByRow({ run })).filter(
    ({ row, claims }) => claims > (byRow.get(row)?.claims ?? 0),
  )
  if (lacking.length === 0) return
  await using journal = await openClaimJournal(folder)
  await Promise.all(lacking.map(({ row, claims }) => journal.record({ row, claims, at: now() })))
}

/**
 * Marks what a run has claimed and the ledger does not know of as unknown: before anything of the run is given up or
 * taken over by another. Returns the number of rows.
 */
export async function markClaimed(options: {
  ledger: Ledger
  run: string
  /** The run's folder. */
  folder: string
}): Promise<number> {
  const journal = await readClaims(options.folder)
  return journal === undefined ? 0 : await markClaims({ ...options, claims: journal.byRow, now: Date.now })
}

async function markClaims({
  ledger,
  run,
  claims,
  now,
}: {
  ledger: Ledger
  run: string
  claims: ReadonlyMap<number, JournaledClaim>
  now: () => number
}): Promise<number> {
  if (claims.size === 0) return 0
  const behind = (await ledger.claimsByRow({ run })).flatMap((row) => {
    const claim = claims.get(row.row)
    return claim !== undefined && claim.claims > row.claims ? [{ row, claim }] : []
  })
  await inBatches(behind, async ({ row, claim }) => {
    const sends = row.sends + claim.claims - row.claims
    const claimed = { claims: claim.claims, sends, sentAt: claim.at }
    await moveToUnknown({ ledger, row, claimed, now })
  })
  return behind.length
}

/**
 * Marks all that is open in a run as unknown: what looks unsent may have been sent, and what was sent may have been
 * settled and sent again. Returns the number of rows.
 */
export async function markOpen({
  ledger,
  run,
  sends = 1,
  now = Date.now,
}: {
  ledger: Ledger
  run: string
  /** How often each may have been sent without anybody knowing. */
  sends?: number
  now?: () => number
}): Promise<number> {
  const open = (await ledger.claimsByRow({ run })).filter(isOpen)
  await inBatches(open, (row) => {
    const claimed = { claims: row.claims + 1, sends: row.sends + sends }
    return moveToUnknown({ ledger, row, claimed, now })
  })
  return open.length
}

/** What a restore has marked and nobody has looked at since counts its claim already. */
const isOpen = ({ state, outcome, looks }: RowClaims): boolean =>
  state === 'staged' ||
  state === 'sending' ||
  (state === 'unknown' && !(outcome === 'restored' && looks === 0))

/**
 * Moves a row that may have been sent without its ledger knowing, in whichever state the ledger has it. Such a send may
 * still take effect, as one that was made now, so that looks from before it prove nothing. Where another run has taken
 * the key of a closed row, that run may not send blindly either.
 */
export async function moveToUnknown({
  ledger,
  row,
  claimed = { claims: row.claims + 1, sends: row.sends + 1 },
  now,
}: {
  ledger: Ledger
  row: Pick<LedgerRow, 'id' | 'claims' | 'sends'>
  /** What is known of its claims; where nothing is, there was one more. */
  claimed?: Pick<LedgerRow, 'claims' | 'sends'> & Pick<RowPatch, 'sentAt'>
  now: () => number
}): Promise<boolean> {
  const patch = { ...claimed, unknownSince: now(), looks: 0, answeredAt: null }
  const unknown = { ledger, row, to: 'unknown', by: 'restore', outcome: 'restored' } as const
  try {
    return await move({ ...unknown, patch: { ...patch, holdsKey: true } })
  } catch (error) {
    if (!(error instanceof KeyHeldError)) throw error
  }
  for (const holder of await holdersOfKey({ ledger, row }))
    if (holder.state === 'staged') await moveToUnknown({ ledger, row: holder, now })
  return await move({ ...unknown, patch: { ...patch, holdsKey: false } })
}

/** The changes that hold the key of a row now: the row itself, or those of other runs. */
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
