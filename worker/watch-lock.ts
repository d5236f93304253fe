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

/** Says at intervals that the worker is alive; calls `onTaken` once if another one has taken its place. */
export function watchPlace({
  membership,
  onTaken,
}: {
  membership: Membership | undefined
  onTaken: () => void
}) {
  const watch = { isTaken: false, [Symbol.dispose]: () => clearInterval(timer) }
  const beat = async () => {
    // While PostgreSQL is away, nobody can take the place either.
    const isMember = await membership?.beat().catch(() => true)
    if (isMember !== false || watch.isTaken) return
    watch.isTaken = true
    onTaken()
  }
  const timer = setInterval(() => void beat(), beatEveryMs)
  return watch
}
