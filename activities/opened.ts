import { kindsFor, type NoticeKind } from '../core/notifications/notification.ts'
import type { MarkName } from '../core/runs/search-attributes.ts'
import type { ActivityDeps } from './deps.ts'

/** What a run is handed when it opens: its plan, and what its worker serves it with. */
export type Opened<Plan> = Plan & {
  /** The notifications that at least one channel of `NOTIFY_URL` accepts. */
  notifies: NoticeKind[]
  /** The search attributes that the server has. */
  marks: MarkName[]
}

export async function toOpened<Plan>(
  { receivers, marks }: Pick<ActivityDeps, 'receivers' | 'marks'>,
  plan: Plan,
): Promise<Opened<Plan>> {
  return { ...plan, notifies: kindsFor(receivers), marks: await marks() }
}
