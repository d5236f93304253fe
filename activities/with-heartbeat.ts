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
