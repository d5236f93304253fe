export interface Check {
  ok: boolean
  message: string
}

/** Whether a worker can work now, with the result of each check. */
export interface Readiness {
  ready: boolean
  /** `polling`, `lock`, `disk`, `service`, and `state` if it is on PostgreSQL. */
  checks: Record<string, Check>
}

/** Runs all checks at once; one that throws or times out has failed. */
export async function toReadiness(
  checks: Readonly<Record<string, () => Promise<Check>>>,
  { withinMs = 3_000 } = {},
): Promise<Readiness> {
  const running = Object.entries(checks).map(async ([name, run]) => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Check>((resolve) => {
      timer = setTimeout(() => resolve({ ok: false, message: `no answer in ${withinMs / 1000} s` }), withinMs)
    })
    const failed = (error: unknown): Check => ({
      ok: false,
      message: error instanceof Error ? error.message : String(error),
    })
    const check = await Promise.race([run().catch(failed), late])
    clearTimeout(timer)
    return [name, check] as const
  })
  const results = Object.fromEntries(await Promise.all(running))
  return { ready: Object.values(results).every(({ ok }) => ok), checks: results }
}
