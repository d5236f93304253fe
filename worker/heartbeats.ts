import { isLoopback } from '../core/billing/connections.ts'
import type { Heartbeats } from '../core/notifications/opened.ts'

/** How often steps heartbeat to the Temporal server at `address`: near if it is this machine or a container beside it. */
export function heartbeatsAt(address = 'localhost:7233'): Heartbeats {
  const url = `http://${address}`
  if (!URL.canParse(url)) return 'remote'
  return isLoopback(url) || !/[.:]/.test(new URL(url).hostname) ? 'local' : 'remote'
}
