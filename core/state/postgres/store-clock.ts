/** Follows the clock of a server, so that the times in its rows compare whichever machine wrote them. */
export interface StoreClock {
  /** Now, in milliseconds since 1970, by the server's clock. */
  now(): number
  /** Asks the server for its time. */
  measure(): Promise<void>
}

/** A larger difference between two measurements is a jump of a clock. */
const mostDriftMs = 1_000
const longestRoundTripMs = 1_000

/**
 * Measures the server's clock against this machine's monotonic clock, halfway through the round trip. It follows a jump of
 * the server's clock by at most one second for each measurement: if it believed a jump of a minute at once, a lookup a
 * minute too early could prove an absence.
 */
export async function startClock(options: {
  /** The server's time in ms since 1970. */
  ask: () => Promise<number>
  onJump?: ((ms: number) => void) | undefined
  monotonic?: () => number
  wall?: () => number
}): Promise<StoreClock> {
  const { ask, onJump, monotonic = () => performance.now(), wall = Date.now } = options
  const measured = async () => {
    const before = monotonic()
    const server = await ask()
    const after = monotonic()
    // Suspension stops the monotonic clock only, so the wall clock moves against it then.
    return { server: server - (before + after) / 2, wall: wall() - after, roundTripMs: after - before }
  }
  let last = await measured()
  let measuring = false
  const clock: StoreClock = {
    now() {
      const at = monotonic()
      const isMoved = Math.abs(wall() - at - last.wall) > mostDriftMs
      // The machine was suspended, or its clock was set: only the server knows.
      if (isMoved && !measuring) void clock.measure().catch(() => undefined)
      return Math.round(at + last.server)
    },
    async measure() {
      measuring = true
      const next = await measured().finally(() => {
        measuring = false
      })
      // Its error is up to half the round trip, which includes the wait for a free connection.
      if (next.roundTripMs > longestRoundTripMs) return
      const moved = next.server - last.server
      const suspended = next.wall - last.wall
      const isJump = Math.abs(moved) > mostDriftMs && Math.abs(moved - suspended) > mostDriftMs
      if (isJump) onJump?.(moved)
      const server = isJump ? last.server + Math.sign(moved) * mostDriftMs : next.server
      last = { ...next, server }
    },
  }
  return clock
}
