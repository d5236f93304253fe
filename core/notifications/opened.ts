import { kindsFor, type NotificationKind, type Receiver } from './notification.ts'
import type { SearchAttributeName } from '../runs/search-attributes.ts'

/** What a run gets when it opens: its plan, and what its worker offers it. */
export type Opened<Plan> = Plan & {
  /** The notifications that at least one channel of `NOTIFY_URL` accepts. */
  notifies: NotificationKind[]
  /** The search attributes that the server has. */
  searchAttributes: SearchAttributeName[]
}

export async function toOpened<Plan>(
  {
    receivers,
    searchAttributes,
  }: { receivers: readonly Receiver[]; searchAttributes: () => Promise<SearchAttributeName[]> },
  plan: Plan,
): Promise<Opened<Plan>> {
  return { ...plan, notifies: kindsFor(receivers), searchAttributes: await searchAttributes() }
}
