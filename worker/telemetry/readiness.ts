export interface Check {
  ok: boolean
  says: string
}

/** Whether a worker can do its work now, and if not, what is missing. */
export interface Readiness {
  ready: boolean
  /** `polling`, `lock`, `disk`, `service`. */
  checks: Record<string, Check>
}

/** Asks all at once; one that fails or takes too long is not well, in its own words. */
export async function toReadiness(
  checks: Readonly<Record<string, () => Promise<Check>>>,
  { withinMs = 3_000 } = {},
): Promise<Readiness> {
  const looks = Object.entries(checks).map(async ([name, look]) => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<Check>((resolve) => {
      timer = setTimeout(() => resolve({ ok: false, says: `no answer in ${withinMs / 1000} s` }), withinMs)
    })
    const failed = (error: unknown): Check => ({
      ok: false,
      says: error instanceof Error ? error.message : String(error),
    })
    const check = await Promise.race([look().catch(failed), late])
    clearTimeout(timer)
    return [name, check] as const
  })
  const seen = Object.fromEntries(await Promise.all(looks))
  return { ready: Object.values(seen).every(({ ok }) => ok), checks: seen }
}
