import { kindsFor, type NotificationKind, type NotificationChannel } from './notification.ts'
import type { SearchAttributeName } from '../runs/name.ts'

/** The result of opening a run: its plan, and the capabilities of its worker. */
export type Opened<Plan> = Plan & {
  /** The notifications that at least one channel of `NOTIFY_URL` accepts. */
  notifies: NotificationKind[]
  /** The search attributes that the server has. */
  searchAttributes: SearchAttributeName[]
  /** How often steps heartbeat: depends on whether Temporal is local or remote. */
  heartbeats: Heartbeats
  /** The task queue of the steps that read ranges: each worker takes only a few at a time. */
  rangeQueue: string
}

/** What the failure of a run that did not open tells it. */
export type Unopened = Pick<Opened<unknown>, 'searchAttributes'>

export type Heartbeats = 'local' | 'remote'

interface Offer {
  channels: readonly NotificationChannel[]
  searchAttributes: () => Promise<SearchAttributeName[]>
  heartbeats: Heartbeats
  rangeQueue: string
}

export async function toOpened<Plan>(offer: Offer, plan: Plan): Promise<Opened<Plan>> {
  const { channels, heartbeats, rangeQueue } = offer
  const searchAttributes = await offer.searchAttributes()
  return { ...plan, notifies: kindsFor(channels), searchAttributes, heartbeats, rangeQueue }
}
