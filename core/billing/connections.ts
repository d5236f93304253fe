import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'

export interface Connections {
  http: HttpAgent
  https: HttpsAgent
}

/**
 * Connections to the service, never more than `most` at once. They go through HTTPS_PROXY and HTTP_PROXY unless
 * NO_PROXY names the host, and trust what NODE_EXTRA_CA_CERTS adds (Node reads that itself at its start).
 * With `keepAlive: false` every request has a connection of its own.
 */
export function createConnections({ most, keepAlive }: { most: number; keepAlive: boolean }): Connections {
  const options = { keepAlive, maxSockets: most, maxFreeSockets: most, proxyEnv: process.env }
  return { http: new HttpAgent(options), https: new HttpsAgent(options) }
}
