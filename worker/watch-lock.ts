import type { WorkerLock } from '../core/state/data-folder-lock.ts'
import { beatEveryMs, type Membership } from '../core/state/postgres/membership.ts'

/** The same as the heartbeat. */
const lockCheckMs = 1_000

/** Calls `onLost` once if the lock is no longer held. */
export function watchLock({ lock, onLost }: { lock: WorkerLock; onLost: () => void }) {
  const watch = {
    isLost: false,
    [Symbol.dispose]: () => clearInterval(timer),
  }
  const timer = setInterval(() => {
    if (watch.isLost || lock.isHeld()) return
    watch.isLost = true
    onLost()
  }, lockCheckMs)
  return watch
}

/** Says at intervals that the worker is alive. */
export function keepBeating(membership: Membership | undefined): Disposable {
  // PostgreSQL may be away.
  const beat = () => void membership?.beat().catch(() => undefined)
  const timer = setInterval(beat, beatEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
