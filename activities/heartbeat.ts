import { heartbeat } from '@temporalio/activity'

/** Temporal is told this often, which is also how soon a stop is heard. */
const heartbeatMs = 1_000

/** Does `work` and tells meanwhile, every second, how far it is. */
export async function withHeartbeat<T>({
  report,
  work,
}: {
  report: () => void
  work: () => Promise<T>
}): Promise<T> {
  report()
  const beat = setInterval(report, heartbeatMs)
  try {
    return await work()
  } finally {
    clearInterval(beat)
  }
}

/** A step that has nothing to tell but that it lives, so that one whose process died is done again within seconds. */
export const beating =
  <Input extends unknown[], T>(step: (...input: Input) => Promise<T>) =>
  (...input: Input): Promise<T> =>
    withHeartbeat({ report: () => heartbeat(), work: () => step(...input) })
