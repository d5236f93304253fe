import { hostname } from 'node:os'
import type { Identity } from '../core/runs/identity.ts'

/**
 * The worker's identity as Temporal lists it among the pollers of a task queue: the command line reads it to say LIVE or
 * TEST first, and to check that both use the same data folder.
 */
export function toWorkerIdentity(identity: Identity): string {
  const { mode, workspace, baseUrl, store } = identity
  return `${mode.toUpperCase()} ${workspace} ${baseUrl} ${store} ${process.pid}@${hostname()}`
}

const form = /^(LIVE|TEST) (\S+) (\S+) (\S+) \d+@\S+$/

/** Undefined if the poller is not a worker of this connector. */
export function parseWorkerIdentity(text: string): Identity | undefined {
  const [, mode, workspace, baseUrl, store] = form.exec(text) ?? []
  if (mode === undefined || workspace === undefined || baseUrl === undefined || store === undefined)
    return undefined
  return { mode: mode === 'LIVE' ? 'live' : 'test', workspace, baseUrl, store }
}
