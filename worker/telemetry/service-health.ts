import type { Try } from '../../core/billing/calls.ts'

/** How long, in ms, a success shows that the service is reachable. */
const goodMs = 60_000
/** How long, in ms, a failure counts; short, so that a recovery shows soon. */
const badMs = 5_000

export interface ServiceHealth {
  /** Called after every attempt of every request. */
  record: (tried: Pick<Try, 'status'>) => void
  /** Whether the service was reachable recently; sends a request if there was none for a while. */
  check: () => Promise<{ ok: boolean; message: string }>
}

/** Remembers the service's last response; calls `ping` if it is too old. */
export function createServiceHealth(options: {
  ping: () => Promise<unknown>
  now?: () => number
}): ServiceHealth {
  const { ping, now = () => performance.now() } = options
  let last: { ok: boolean; message: string; at: number } | undefined
  let asking: Promise<unknown> | undefined

  const isFresh = () => last !== undefined && now() - last.at < (last.ok ? goodMs : badMs)
  return {
    record({ status }) {
      last = { ...judge(status), at: now() }
    },
    async check() {
      if (!isFresh()) {
        // The response is recorded like any other.
        asking ??= ping()
          .catch(() => undefined)
          .finally(() => (asking = undefined))
        await asking
      }
      const { ok, message } = last ?? { ok: false, message: 'no request has been sent yet' }
      return { ok, message }
    },
  }
}

/** 429 and 404 come from a working service; with a rejected token nothing works. */
function judge(status: number | undefined): { ok: boolean; message: string } {
  if (status === undefined) return { ok: false, message: 'no complete answer came' }
  const ok = status < 500 && status !== 401 && status !== 403
  return { ok, message: `it answered ${status}` }
}
