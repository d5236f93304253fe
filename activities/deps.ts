import type { Client } from '@temporalio/client'
import type { Billing } from '../core/billing/client.ts'
import type { Destination } from '../core/destinations/destination.ts'
import type { Identity } from '../core/runs/identity.ts'
import type { State } from '../core/state/open.ts'
import type { NotificationChannel, Ui } from '../core/notifications/notification.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'
import type { ReportCounts } from '../core/runs/view/counts.ts'
import type { FileStore } from '../core/storage/file-store.ts'
import type { SharedFolder } from '../core/storage/cached.ts'
import type { DestinationName } from '../core/destinations/names.ts'
import type { ImportPlan } from '../core/imports/input.ts'
import type { RecoveryPlan } from '../core/recoveries/input.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { SearchAttributeName } from '../core/runs/name.ts'

export type WritePlan = ImportPlan | RecoveryPlan

/** What the worker provides to its activities, wired once when it starts. */
export interface ActivityDeps {
  billing: Billing
  state: State
  /** The service, workspace and mode of this worker; every run is checked against it. */
  identity: Identity
  /** Absolute path of the data folder. */
  dataDir: string
  /** What the steps of a run leave to each other. */
  shared: SharedFolder
  /** Absolute paths of the other roots that a run may publish to (CONNECTOR_OUT_DIRS). */
  outDirs: readonly string[]
  /** Request rate of the whole process (BILLING_REQUESTS_PER_SECOND). */
  requestsPerSecond: number
  /** Requests in flight (BILLING_CONCURRENCY). */
  concurrency: number
  /** A list of twice as many records is read in ranges of at least this many. */
  recordsPerRange: number
  /** How long a record may stay invisible after its `created`, in ms (BILLING_READ_LAG_SECONDS). */
  readLagMs: number
  /** How long a lost request may still take effect, in ms (BILLING_SETTLE_SECONDS). */
  settleMs: number
  /** Whether this worker may send changes of a run; a worker of one command may not resume the runs of another. */
  mayWrite: (workflowId: string) => boolean
  /** The secret key of `--hash`, which replaces values with a keyed hash. */
  hashKey: string
  /** Component versions, recorded in manifests. */
  versions: Readonly<Record<string, string>>
  destinations: ReadonlyMap<string, Destination>
  /** Where files are published (CONNECTOR_FILES_URL); absent for the data folder. */
  files?: FileStore | undefined
  /** The channels to notify (NOTIFY_URL). */
  channels: readonly NotificationChannel[]
  /** Fetches the search attributes that the server has; called for each run, which sets no others. */
  searchAttributes: () => Promise<SearchAttributeName[]>
  /** Whether payloads in Temporal are encrypted (CONNECTOR_PAYLOAD_KEY). */
  encrypts: boolean
  /** How often steps heartbeat (CONNECTOR_HEARTBEATS). */
  heartbeats: Heartbeats
  /** The task queue of `readRange`. */
  rangeQueue: string
  /** The Temporal UI, for links to runs. */
  ui: Ui
  observer: ActivityObserver
  /**
   * If `error` says that the service refuses the token, waits until the token file has a new one; resolves to
   * whether it has. Absent if a refused token ends the run immediately.
   *
   * @throws the signal's reason if it is aborted in the meantime
   */
  awaitToken?:
    | ((
        error: unknown,
        options: {
          signal: AbortSignal
          withinMs: number
          /** Called when the wait begins, with the time when it ends at the latest; ms since 1970. */
          onWait: (until: number) => void
        },
      ) => Promise<boolean>)
    | undefined
  /**
   * Lists a schedule's times after `from`, up to `to` (ms since 1970), as Temporal calculates them for its current
   * definition.
   */
  scheduleTimes: (range: {
    client: Client
    scheduleId: string
    from: number
    to: number
  }) => Promise<number[]>
}

type Resource = ExportPlan['resources'][number]

/** An event for metrics and logs: names, counts and verdicts, never a row. */
export type ActivityEvent =
  /** A segment of a read, or of one range of it, ended; `page` counts all responses of that read or range. */
  | {
      type: 'read'
      run: string
      resource: Resource
      range?: number
      page: number
      records: number
      verdict?: string
    }
  | PublishedEvent
  | { type: 'sent'; run: string; kind: string; ended: string; counts: ReportCounts }
  | { type: 'ended'; run: string; verdict: string }
  /** The service has done a change more than once. */
  | { type: 'doubled'; run: string; row: number; message: string }
  /** The notification of that could not be handed over. */
  | { type: 'notNotified'; run: string; row: number; why: string }

export interface PublishedEvent {
  type: 'published'
  run: string
  resource: Resource
  destination: DestinationName
  verdict: 'proven' | 'unproven'
  records: number
  ms: number
  /** When the read began, in ms since 1970. */
  readAt: number
  /** Whether it covers the whole list, or all changes: not filtered, not capped. */
  whole: boolean
}

/** Called by the activities for metrics and logs. Must not throw or take long. */
export interface ActivityObserver {
  /** Called when pages of a list were read and their records written. */
  onPage(step: { resource: Resource; pages: number; records: number }): void
  onEvent(event: ActivityEvent): void
}
