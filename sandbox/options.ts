import type { Fault } from './faults.ts'

export const listNames = ['customers', 'subscriptions', 'plans', 'retentions'] as const
export type ListName = (typeof listNames)[number]

export const resourceNames = [
  ...listNames,
  'products',
  'addons',
  'orders',
  'creditnotes',
  'cancellations',
] as const
export type ResourceName = (typeof resourceNames)[number]

export type Mode = 'live' | 'test'

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

const liveCounts: Record<ResourceName, number> = {
  customers: 1000,
  subscriptions: 400,
  plans: 60,
  retentions: 500,
  products: 0,
  addons: 0,
  orders: 200,
  creditnotes: 50,
  cancellations: 50,
}
const testCounts: Record<ResourceName, number> = {
  customers: 40,
  subscriptions: 20,
  plans: 10,
  retentions: 20,
  products: 0,
  addons: 0,
  orders: 10,
  creditnotes: 5,
  cancellations: 5,
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
    counts: { live: { ...liveCounts, ...counts }, test: { ...testCounts, ...inTest } },
    lists: {
      customers: { ...manners, ...lists?.customers },
      subscriptions: { ...manners, ...lists?.subscriptions },
      plans: { ...manners, ...lists?.plans },
      retentions: { ...manners, ...lists?.retentions },
    },
  }
}

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
