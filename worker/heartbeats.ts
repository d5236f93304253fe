import { isLoopback } from '../core/billing/connections.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'

/**
 * The heartbeat intervals for the Temporal server at `address`: short if it is on this machine or in a
 * container beside it.
 */
export function heartbeatsAt(address = 'localhost:7233'): Heartbeats {
  const url = `http://${address}`
  if (!URL.canParse(url)) return 'remote'
  return isLoopback(url) || !/[.:]/.test(new URL(url).hostname) ? 'local' : 'remote'
}
