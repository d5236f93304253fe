import { type ClaimsMark, createFolderMark, refuseOlderThanMark } from './claims-mark.ts'
import { type Leases, createLeases } from './leases.ts'
import { LockLostError, StateError } from './errors.ts'
import type { Ledger } from './ledger/ledger.ts'
import { type MovedNote, openSqliteStore, refuseMoved } from './sqlite.ts'
import type { StateDatabase } from './postgres/postgres-store.ts'
import { createNotes, type Notes } from './notes.ts'
import type { RateShares } from './rate-shares.ts'
import type { Store } from './store.ts'
import { createPublications, type Publications } from './publications.ts'
import { connector } from '../runs/view/shell.ts'

/** Everything the connector remembers between runs: in `state.db` of the data folder, or on PostgreSQL. */
export interface State {
  /** The id of this store, created when it is first opened: a run refuses to continue with another one. */
  readonly storeId: string
  readonly leases: Leases
  readonly publications: Publications
  readonly notes: Notes
  readonly ledger: Ledger
  /** Set for a file that may be written; see `sharedMark` for PostgreSQL. */
  readonly mark: ClaimsMark | undefined
  /** What the workers of a shared state share of the rate; undefined for a file. */
  readonly rateShares: RateShares | undefined
  /** The PostgreSQL database, which several workers may share; undefined for a file. */
  readonly shared: SharedStore | undefined
  /** Now, in milliseconds since 1970, by the store's clock. */
  readonly now: () => number
  close(): Promise<void>
}

/** A state on PostgreSQL. */
export type SharedStore = Pick<Store, 'db' | 'now' | 'place'>

/** Where the state of a data folder is. */
export interface StatePlace {
  /** The data folder. */
  folder: string
  /** Instead of `state.db` in that folder. */
  database?: StateDatabase | undefined
}

/**
 * Opens the state of a data folder. Without `readOnly` it is created as needed; only the process
 * that holds the folder's lock may do that. Every commit is on disk when its promise resolves.
 * `isHeld` says whether this process still holds that lock: once it does not, nothing more is claimed.
 *
 * @throws {NoStateError} with `readOnly`
 * @throws {OldLedgerError} without `readOnly` and `isRepair`: it was restored from a backup
 * @throws {StateError} it cannot be opened, is not safe, has other tables, or is elsewhere
 */
export async function openState({
  folder,
  database,
  readOnly = false,
  isRepair = false,
  isHeld = () => true,
  onClockJump,
}: StatePlace & {
  readOnly?: boolean
  /** To repair a ledger that was restored from a backup. */
  isRepair?: boolean
  isHeld?: () => boolean
  /** Called with the jump of the store's clock in ms. */
  onClockJump?: (ms: number) => void
}): Promise<State> {
  const fence = () => {
    if (!isHeld()) throw new LockLostError({ folder })
  }
  const moved = refuseMoved({ folder, database })
  // The query builder and the driver take a quarter of a second to load, and most commands open no state.
  const { createLedger } = await import('./ledger/ledger.ts')
  const open = async () => {
    if (database === undefined) return await openSqliteStore({ folder, readOnly, onClockJump })
    const { openPostgresStore } = await import('./postgres/postgres-store.ts')
    return await openPostgresStore({ database, readOnly, onClockJump })
  }
  await using closing = new AsyncDisposableStack()
  const store = closing.adopt(await open(), (opened) => opened.close())
  const storeId = await readStoreId({ store, moved })
  const mark = store.isShared || readOnly ? undefined : closing.use(createFolderMark(folder))
  let claims = 0
  const onClaim = mark && (() => mark.raise((claims += 1)))
  const ledger = createLedger({ store, fence, onClaim })
  if (mark !== undefined) {
    if (!isRepair) await refuseOlderThanMark({ ledger, mark })
    claims = await ledger.claimed()
    // A mark that was lost, or that a kill left behind, is whole again before anything can be restored.
    if (!isRepair && claims > (await mark.read())) await mark.raise(claims)
  }
  const resources = closing.move()
  return {
    storeId,
    leases: createLeases(store),
    publications: createPublications(store, folder),
    notes: createNotes(store),
    ledger,
    mark,
    shared: store.isShared ? store : undefined,
    rateShares: store.rateShares,
    now: () => store.now(),
    close: () => resources.disposeAsync(),
  }
}

async function readStoreId({ store, moved }: { store: Store; moved: MovedNote | undefined }) {
  const { db, place } = store
  const { id } = await db.selectFrom('store').select('id').executeTakeFirstOrThrow()
  if (moved !== undefined && id !== moved.store)
    throw new StateError(
      'NotMovedHereError',
      `The state of this data folder was moved to ${moved.to}, and ${place} has another one or none. Correct ` +
        `CONNECTOR_STATE_URL and BILLING_WORKSPACE; if the move was interrupted, repeat \`${connector`state move`}\`.`,
    )
  return id
}
