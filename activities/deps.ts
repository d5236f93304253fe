import type { Client } from '@temporalio/client'
import type { Billing } from '../core/billing/client.ts'
import type { Destination } from '../core/destinations/destination.ts'
import type { Identity } from '../core/runs/identity.ts'
import type { State } from '../core/state/open.ts'
import type { Receiver, Ui } from '../core/notifications/notification.ts'
import type { ActivityObserver } from './activity-event.ts'
import type { SearchAttributeName } from '../core/runs/search-attributes.ts'

/** What the worker gives its activities: the world, wired once at its start. */
export interface ActivityDeps {
  billing: Billing
  state: State
  /** Whom this worker serves; every run is checked against it. */
  identity: Identity
  /** The data folder, absolute. */
  dataDir: string
  /** Other roots that a run may publish to (CONNECTOR_OUT_DIRS), absolute. */
  outDirs: readonly string[]
  /** Of the whole process (BILLING_REQUESTS_PER_SECOND). */
  requestsPerSecond: number
  /** Windows of one read in flight (BILLING_CONCURRENCY). */
  concurrency: number
  /** How long a record may stay invisible after its `created` (BILLING_READ_LAG_SECONDS). */
  readLagMs: number
  /** How long a lost request may still take effect (BILLING_SETTLE_SECONDS). */
  settleMs: number
  /** Whether this worker may send changes of a run: one that was started for another command does not wake it. */
  mayWrite: (workflowId: string) => boolean
  /** The secret that `--hash` replaces values with. */
  hashKey: string
  /** What a manifest says it was made with. */
  versions: Readonly<Record<string, string>>
  destinations: ReadonlyMap<string, Destination>
  /** Who is told what people should know (NOTIFY_URL). */
  receivers: readonly Receiver[]
  /** The search attributes that the server has, asked for each run: it sets no others, and one failed look is only that run's. */
  searchAttributes: () => Promise<SearchAttributeName[]>
  /** Where people see runs. */
  ui: Ui
  observer: ActivityObserver
  /**
   * Waits, where `error` says that the service refuses the token, until its file holds another; whether it does then.
   * Absent where a refused token ends the run at once.
   *
   * @throws the reason of the signal, where that was aborted meanwhile
   */
  awaitToken?:
    | ((error: unknown, options: { signal: AbortSignal; withinMs: number }) => Promise<boolean>)
    | undefined
  /** The times of a schedule after `from`, up to `to` (ms since 1970), as Temporal reckons them for it as it is now. */
  scheduleTimes: (range: {
    client: Client
    scheduleId: string
    from: number
    to: number
  }) => Promise<number[]>
}
