import { isIPv4 } from 'node:net'

/** Whether the address is this machine, so that requests cross no network. */
export function isLoopback(url: string): boolean {
  const { hostname } = new URL(url)
  return isIPv4(hostname) ? hostname.startsWith('127.') : ['localhost', '[::1]'].includes(hostname)
}
