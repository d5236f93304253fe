import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIPv4 } from 'node:net'

export interface Connections {
  http: HttpAgent
  https: HttpsAgent
}

/** Whether the address names this machine itself, so that nothing sent there crosses a network. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return isIPv4(hostname) ? hostname.startsWith('127.') : ['localhost', '[::1]'].includes(hostname)
}

/**
 * Connections to the host of `url`, never more than `most` at once. They go through HTTPS_PROXY and HTTP_PROXY unless
 * NO_PROXY names the host, and trust what NODE_EXTRA_CA_CERTS adds (Node reads that itself at its start). To this
 * machine itself they never take a proxy: it would get the token in the clear.
 * With `keepAlive: false` every request has a connection of its own.
 */
export function createConnections(wanted: { url: string; most: number; keepAlive: boolean }): Connections {
  const { url, most, keepAlive } = wanted
  const proxyEnv = isLoopback(url) ? {} : process.env
  const options = { keepAlive, maxSockets: most, maxFreeSockets: most, proxyEnv }
  return { http: new HttpAgent(options), https: new HttpsAgent(options) }
}
