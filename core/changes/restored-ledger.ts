import { KeyHeldError } from '../state/errors.ts'
import type { KeySpace } from '../state/ledger/key-queries.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { ChangeKind } from './change-kind.ts'
import { createClaimJournal, type JournaledClaim, openClaimJournal, readClaims } from './claim-journal.ts'
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
  const {
    ledger,
    run,
    kind,
    folder,
    staged,
    reportedClaims = 0,
    everything = false,
    now = options.ledger.now,
  } = options
  const rows = await ledger.claimsByRow({ run })
  const restaged = Math.max(0, staged - rows.length)
  if (restaged > 0) await stageKeptChanges(options)
  const journal = await readClaims(folder)
  let unknown = await markClaims({ ledger, run, now, claims: journal?.byRow ?? new Map() })
  if (everything || journal === undefined || journal.recorded < reportedClaims) {
    const known = (await ledger.claimsByRow({ run })).reduce((sum, { claims }) => sum + claims, 0)
    // All forgotten claims may belong to a single subscription, and `attempts` is a hard bound.
    const sends = kind.confirmedByLookup === true ? Math.max(1, reportedClaims - known) : 1
    unknown += await markOpen({ ledger, run, sends, now })
  }
  if (journal === undefined) await createClaimJournal(folder)
  await addToJournal({ ledger, run, folder, now })
  return { restaged, unknown }
}

/**
 * Adds claims that only the ledger has, so that a lost or restored journal is complete again in case the ledger is lost later.
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
 * Marks changes as unknown that the run has claimed without the ledger knowing: done before any change of the run is
 * closed or taken over by another run. Returns the number of rows.
 */
export async function markClaimed(options: {
  ledger: Ledger
  run: string
  /** The run's folder. */
  folder: string
}): Promise<number> {
  const journal = await readClaims(options.folder)
  return journal === undefined
    ? 0
    : await markClaims({ ...options, claims: journal.byRow, now: options.ledger.now })
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
  const outdated = (await ledger.claimsByRow({ run })).flatMap((row) => {
    const claim = claims.get(row.row)
    return claim !== undefined && claim.claims > row.claims ? [{ row, claim }] : []
  })
  await inBatches(outdated, async ({ row, claim }) => {
    const sends = row.sends + claim.claims - row.claims
    const claimed = { claims: claim.claims, sends, sentAt: claim.at }
    await moveToUnknown({ ledger, row, claimed, now })
  })
  return outdated.length
}

/**
 * Marks all open changes of a run as unknown: one that looks unsent may have been sent, and one that was sent may have
 * been reconciled and sent again. Returns the number of rows.
 */
export async function markOpen({
  ledger,
  run,
  sends = 1,
  now = ledger.now,
}: {
  ledger: Ledger
  run: string
  /** How often each may have been sent without a record of it. */
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

/** A change that a restore has marked, and that was not looked up since, already counts the claim. */
const isOpen = ({ state, outcome, lookups }: RowClaims): boolean =>
  state === 'staged' ||
  state === 'sending' ||
  (state === 'unknown' && !(outcome === 'restored' && lookups === 0))

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
    return await transition({ ...unknown, patch: { ...patch, holdsKey: true } })
  } catch (error) {
    if (!(error instanceof KeyHeldError)) throw error
  }
  for (const holder of await holdersOfKey({ ledger, row }))
    if (holder.state === 'staged') await moveToUnknown({ ledger, row: holder, now })
  return await transition({ ...unknown, patch: { ...patch, holdsKey: false } })
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
