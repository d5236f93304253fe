import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isLoopback } from './loopback.ts'

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
  const agentOptions = connectionOptions(options)
  return { http: new HttpAgent(agentOptions), https: new HttpsAgent(agentOptions) }
}

export function connectionOptions(options: { url: string; maxConnections: number; keepAlive: boolean }) {
  const { url, maxConnections, keepAlive } = options
  const proxyEnv = isLoopback(url) ? {} : process.env
  return { keepAlive, maxSockets: maxConnections, maxFreeSockets: maxConnections, proxyEnv }
}
