import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIPv4 } from 'node:net'

export interface Connections {
  http: HttpAgent
  https: HttpsAgent
}

/**
 * Agents for the host of `url`, with at most `maxConnections` connections. They honour HTTPS_PROXY, HTTP_PROXY and
 * NO_PROXY, and trust the certificates of NODE_EXTRA_CA_CERTS (which Node reads when it starts). Connections to this
 * machine never use a proxy, which would get the token in the clear.
 * With `keepAlive: false`, every request uses a new connection.
 */
export function createConnections(options: {
  url: string
  maxConnections: number
  keepAlive: boolean
}): Connections {
  const { url, maxConnections, keepAlive } = options
  const proxyEnv = isLoopback(url) ? {} : process.env
  const agentOptions = { keepAlive, maxSockets: maxConnections, maxFreeSockets: maxConnections, proxyEnv }
  return { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) }
}

/** Whether the address is this machine, so that requests cross no network. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return isIPv4(hostname) ? hostname.startsWith('127.') : ['localhost', '[::1]'].includes(hostname)
}
