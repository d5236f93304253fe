import type { Try } from '../../core/billing/calls.ts'

/** So long a good answer says that the service can be reached. */
const goodMs = 60_000
/** So long a bad one says that it can't: what is mended is seen soon. */
const badMs = 5_000

export interface ServiceHealth {
  /** Told of every try of every request. */
  heard: (tried: Pick<Try, 'status'>) => void
  /** Whether the service was reached lately; where nobody has asked it for a while, it is asked once. */
  look: () => Promise<{ ok: boolean; says: string }>
}

/** Keeps in mind how the service answered last, and asks it by `ask` where that is long ago. */
export function createServiceHealth(options: {
  ask: () => Promise<unknown>
  now?: () => number
}): ServiceHealth {
  const { ask, now = () => performance.now() } = options
  let last: { ok: boolean; says: string; at: number } | undefined
  let asking: Promise<unknown> | undefined

  const isFresh = () => last !== undefined && now() - last.at < (last.ok ? goodMs : badMs)
  return {
    heard({ status }) {
      last = { ...judge(status), at: now() }
    },
    async look() {
      if (!isFresh()) {
        // What it answers, or does not, is heard as of any other request.
        asking ??= ask()
          .catch(() => undefined)
          .finally(() => (asking = undefined))
        await asking
      }
      const { ok, says } = last ?? { ok: false, says: 'nothing was asked yet' }
      return { ok, says }
    },
  }
}

/** 429 and a 404 are answers of a service that works; a token that is refused works for nothing. */
function judge(status: number | undefined): { ok: boolean; says: string } {
  if (status === undefined) return { ok: false, says: 'no whole answer came' }
  const ok = status < 500 && status !== 401 && status !== 403
  return { ok, says: `it answered ${status}` }
}
