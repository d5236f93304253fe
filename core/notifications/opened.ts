import { kindsFor, type NotificationKind, type NotificationChannel } from './notification.ts'
import type { SearchAttributeName } from '../runs/search-attributes.ts'

/** What a run gets when it opens: its plan, and the capabilities of its worker. */
export type Opened<Plan> = Plan & {
  /** The notifications that at least one channel of `NOTIFY_URL` accepts. */
  notifies: NotificationKind[]
  /** The search attributes that the server has. */
  searchAttributes: SearchAttributeName[]
}

export async function toOpened<Plan>(
  {
    channels,
    searchAttributes,
  }: { channels: readonly NotificationChannel[]; searchAttributes: () => Promise<SearchAttributeName[]> },
  plan: Plan,
): Promise<Opened<Plan>> {
  return { ...plan, notifies: kindsFor(channels), searchAttributes: await searchAttributes() }
}
