/** Follows the clock of a store, so that the times in its rows compare whichever machine wrote them. */
export interface StoreClock {
  /** Now, in milliseconds since 1970, by the store's clock. */
  now(): number
  /** Asks the store for its time. */
  measure(): Promise<void>
}

export interface ClockOptions {
  /** The store's time in ms since 1970. */
  ask: () => Promise<number>
  /** Called with the jump of its clock in ms. */
  onJump?: ((ms: number) => void) | undefined
  monotonic?: () => number
  wall?: () => number
  /** Counts the time of a suspension, too. Default: `wall`, unless that is the clock that is asked. */
  elapsed?: () => number
}

/** A larger difference between two measurements is a jump of a clock. */
const mostDriftMs = 1_000
const longestRoundTripMs = 1_000

/**
 * Measures the store's clock against this machine's monotonic clock, halfway through the round trip. It follows a jump of
 * the store's clock by at most one second for each measurement: if it believed a jump of a minute at once, a lookup a
 * minute too early could prove an absence.
 */
export async function startClock(options: ClockOptions): Promise<StoreClock> {
  const { ask, onJump, monotonic = () => performance.now(), wall = Date.now, elapsed = wall } = options
  const measured = async () => {
    const before = monotonic()
    const store = await ask()
    const after = monotonic()
    const times = { wall: wall() - after, elapsed: elapsed() - after }
    return { store: store - (before + after) / 2, ...times, roundTripMs: after - before }
  }
  let last = await measured()
  let measuring = false
  const clock: StoreClock = {
    now() {
      const at = monotonic()
      const isMoved = Math.abs(wall() - at - last.wall) > mostDriftMs
      // The machine was suspended, or its clock was set: only the store knows.
      if (isMoved && !measuring) void clock.measure().catch(() => undefined)
      return Math.round(at + last.store)
    },
    async measure() {
      measuring = true
      const next = await measured().finally(() => {
        measuring = false
      })
      // Its error is up to half the round trip, which includes the wait for a free connection.
      if (next.roundTripMs > longestRoundTripMs) return
      const moved = next.store - last.store
      // Suspension stops the monotonic clock only.
      const suspended = next.elapsed - last.elapsed
      const isJump = Math.abs(moved) > mostDriftMs && Math.abs(moved - suspended) > mostDriftMs
      if (isJump) onJump?.(moved)
      const store = isJump ? last.store + Math.sign(moved) * mostDriftMs : next.store
      last = { ...next, store }
    },
  }
  return clock
}

const clockEveryMs = 10_000

/** Starts a clock and measures it now and then until it is stopped. */
export async function followClock(
  options: ClockOptions,
): Promise<Pick<StoreClock, 'now'> & { stop(): void }> {
  const clock = await startClock(options)
  const timer = setInterval(() => void clock.measure().catch(() => undefined), clockEveryMs).unref()
  return { now: () => clock.now(), stop: () => clearInterval(timer) }
}
