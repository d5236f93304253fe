import { kindsFor, type NoticeKind, type Receiver } from './notification.ts'
import type { MarkName } from '../runs/search-attributes.ts'

/** What a run gets when it opens: its plan, and what its worker offers it. */
export type Opened<Plan> = Plan & {
  /** The notifications that at least one channel of `NOTIFY_URL` accepts. */
  notifies: NoticeKind[]
  /** The search attributes that the server has. */
  marks: MarkName[]
}

export async function toOpened<Plan>(
  { receivers, marks }: { receivers: readonly Receiver[]; marks: () => Promise<MarkName[]> },
  plan: Plan,
): Promise<Opened<Plan>> {
  return { ...plan, notifies: kindsFor(receivers), marks: await marks() }
}
