import { hostname } from 'node:os'
import type { Identity } from '../core/runs/identity.ts'

/**
 * What a worker says of itself where Temporal lists who polls a task queue: the command line reads it back to say
 * LIVE or TEST before it does anything, and to see that both look at the same data folder.
 */
export function toWorkerIdentity(identity: Identity): string {
  const { mode, workspace, baseUrl, store } = identity
  return `${mode.toUpperCase()} ${workspace} ${baseUrl} ${store} ${process.pid}@${hostname()}`
}

const form = /^(LIVE|TEST) (\S+) (\S+) (\S+) \d+@\S+$/

/** Undefined where the poller is no worker of this connector. */
export function parseWorkerIdentity(text: string): Identity | undefined {
  const [, mode, workspace, baseUrl, store] = form.exec(text) ?? []
  if (mode === undefined || workspace === undefined || baseUrl === undefined || store === undefined)
    return undefined
  return { mode: mode === 'LIVE' ? 'live' : 'test', workspace, baseUrl, store }
}
