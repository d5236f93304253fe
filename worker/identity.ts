import { createRequire } from 'node:module'
import type { Identity } from '../core/runs/identity.ts'
import { workerName } from '../core/state/postgres/membership.ts'
import type { PayloadKey } from './settings/kinds.ts'

/** The connector's version. */
export const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** A worker as Temporal lists it. */
export interface ListedWorker {
  identity: Identity
  /** The ids of its payload keys; it encrypts with the first. */
  keyIds: readonly string[]
}

/**
 * The worker's identity as Temporal lists it among a task queue's pollers. The command line reads it to say
 * LIVE or TEST first, and to check that both use the same data folder and that it can decrypt the worker's
 * payloads.
 */
export function toWorkerIdentity(identity: Identity, keys: readonly PayloadKey[]): string {
  const { mode, workspace, baseUrl, store } = identity
  const keyIds = keys.length === 0 ? '' : ` keys:${keys.map(({ id }) => id).join(',')}`
  return `${mode.toUpperCase()} ${workspace} ${baseUrl} ${store} ${workerName()}${keyIds}`
}

const form = /^(LIVE|TEST) (\S+) (\S+) (\S+) \d+@\S+?(?: keys:(\S+))?$/

/** Undefined if the poller is not a worker of this connector. */
export function parseWorkerIdentity(text: string): ListedWorker | undefined {
  const [, mode, workspace, baseUrl, store, keyIds] = form.exec(text) ?? []
  if (mode === undefined || !workspace || !baseUrl || !store) return undefined
  return {
    identity: { mode: mode === 'LIVE' ? 'live' : 'test', workspace, baseUrl, store },
    keyIds: keyIds?.split(',') ?? [],
  }
}
