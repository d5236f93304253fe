import type { Fault } from './faults.ts'

export type Mode = 'live' | 'test'

/** How many records there are at the start. The place of a name seeds its data, so a new one goes to the end. */
const usualCounts = {
  customers: { live: 1000, test: 40 },
  subscriptions: { live: 400, test: 20 },
  plans: { live: 60, test: 10 },
  retentions: { live: 500, test: 20 },
  products: { live: 0, test: 0 },
  addons: { live: 0, test: 0 },
  orders: { live: 200, test: 10 },
  creditnotes: { live: 50, test: 5 },
  cancellations: { live: 50, test: 5 },
} satisfies Record<string, Record<Mode, number>>
export type ResourceName = keyof typeof usualCounts

export const resourceNames = Object.keys(usualCounts) as ResourceName[]

export const listNames = [
  'customers',
  'subscriptions',
  'plans',
  'retentions',
] as const satisfies readonly ResourceName[]
export type ListName = (typeof listNames)[number]

/** Records with the same `created`. */
export interface Ties {
  /** The share of records with the `created` of the previous record. */
  share?: number
  /** Groups of exactly these sizes, spread evenly over the list. */
  groups?: readonly number[]
}

/** The features of a list. */
export interface ListManners {
  /** The supported values of `ordering`; any other is silently ignored. */
  orderings: readonly string[]
  /** The order if the request has none, or an ignored one. */
  defaultOrdering: string
}

/** Plain JSON. */
export interface SandboxOptions {
  /** Default 0: any free port. */
  port?: number
  /** Default 127.0.0.1. Use another address only in a private network: there is no authentication. */
  host?: string
  /** Determines data, drift and faults. */
  seed?: number
  /** The initial number of records, each for live and test mode. */
  counts?: Partial<Record<ResourceName, number>>
  testCounts?: Partial<Record<ResourceName, number>>
  ties?: Partial<Record<ListName, Ties>>
  /** The share of subscriptions in `needs_attention` (default 0.1). */
  needsAttention?: number
  token?: string
  workspace?: string
  /** Decimals as JSON numbers (default), or as strings, which is Django's own default. */
  decimals?: 'numbers' | 'strings'
  /** Whether records with equal sort keys change places between requests (default), as in a database. */
  tieOrder?: 'shuffled' | 'stable'
  lists?: Partial<Record<ListName, Partial<ListManners>>>
  /** False: test-mode requests act on live data. */
  honoursTestMode?: boolean
  /**
   * Writes all JSON before serving, so that the first read is as fast as the second (12 microseconds per
   * record).
   */
  warm?: boolean
  /** How far the service's clock is ahead of this machine's. */
  clockSkewSeconds?: number
  /** False: responses have no Date header. */
  dateHeader?: boolean
  faults?: readonly Fault[]
  drift?: Drift
  /** The requests that the audit keeps (default: all); it always keeps effects. */
  audit?: 'all' | 'writes' | 'none'
}

export type Settings = Required<
  Omit<SandboxOptions, 'faults' | 'drift' | 'lists' | 'counts' | 'testCounts'>
> & {
  counts: Record<Mode, Record<ResourceName, number>>
  lists: Record<ListName, ListManners>
}

const manners: ListManners = {
  orderings: ['created', '-created', 'updated', '-updated', 'id', '-id'],
  defaultOrdering: '-created',
}

export function toSettings(options: SandboxOptions): Settings {
  const { counts, testCounts: inTest, lists, faults: _faults, drift: _drift, ...given } = options
  return {
    port: 0,
    host: '127.0.0.1',
    seed: 1,
    ties: {},
    needsAttention: 0.1,
    token: 'sandbox-token',
    workspace: 'acc_sandbox',
    decimals: 'numbers',
    tieOrder: 'shuffled',
    honoursTestMode: true,
    warm: false,
    clockSkewSeconds: 0,
    dateHeader: true,
    audit: 'all',
    ...given,
    counts: {
      live: forEach(resourceNames, (name) => counts?.[name] ?? usualCounts[name].live),
      test: forEach(resourceNames, (name) => inTest?.[name] ?? usualCounts[name].test),
    },
    lists: forEach(listNames, (name) => ({ ...manners, ...lists?.[name] })),
  }
}

const forEach = <Name extends string, T>(names: readonly Name[], valueOf: (name: Name) => T) =>
  Object.fromEntries(names.map((name) => [name, valueOf(name)])) as Record<Name, T>

/** How many records to change. */
export interface DriftAmounts {
  deletes?: number
  inserts?: number
  updates?: number
  /**
   * Records that appear now with a `created` up to `lateBySeconds` ago: a transaction that committed late.
   */
  lateCommits?: number
  /** Deleted records that reappear at their old position. */
  restores?: number
}

export interface ListDrift {
  perSecond?: DriftAmounts
  /** After each request to this list; independent of the clock. */
  perRequest?: DriftAmounts
  /** The maximum age of a late commit's `created` (default 30). */
  lateBySeconds?: number
}

/** Lists that change while they are read; live mode only. */
export type Drift = Partial<Record<ListName, ListDrift>>
