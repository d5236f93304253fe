/** The thirteen operations of the interface (its section 4) as one client. */
import { Authorization, type TokenSource } from './authorization.ts'
import { createCalls, type CallObserver, type Calls } from './calls.ts'
import { Lane, RateLimiter, type Share } from './rate-limit.ts'
import {
  expectNothing,
  type FetchedDocument,
  type ListPage,
  toDocument,
  toListPage,
  toRecord,
} from './reply.ts'
import type { ListResource } from './resources/resource.ts'
import { fullJitter } from './retry.ts'
import { createTransport } from './transport.ts'

export interface BillingSettings {
  baseUrl: string
  workspace: string
  testMode: boolean
  token: TokenSource
  /** Of the whole process; fractions and Infinity are allowed. Read anew for every request. Default 10. */
  rate?: Readonly<Share>
  /** Requests on their way at once. Default 4. */
  concurrency?: number
  /** Deadline of one whole request. Default 30. */
  timeoutSeconds?: number
  /** Default 8 MiB, many times what a page of 100 records takes; measured after decompression. */
  maxResponseBytes?: number
  workspaceHeader?: string
  testModeHeader?: string
  /** Told of every try of every request. */
  onRequest?: CallObserver
  /** How long to wait after the failed try number n of a read, in ms. Default: full jitter up to 30 s. */
  readWaitMs?: (attempt: number) => number
}

export interface ListQuery {
  resource: ListResource
  /** From 1. */
  page: number
  /** 1 to 100. */
  pageSize: number
  ordering?: string
  filters?: Readonly<Record<string, string>>
  /** After how many tries it counts as lost (default 8): a first look that somebody waits for takes fewer. */
  tries?: number
  signal?: AbortSignal
  /** Called just before each request leaves, those of further tries included; where this throws, it never does. */
  beforeSend?: () => void | Promise<void>
}

export interface ReadOptions {
  /** As in `ListQuery`. */
  tries?: number
  signal?: AbortSignal
}

export interface WriteOptions {
  signal?: AbortSignal
  /** For a write that can't be looked up later: a closed keep-alive connection must not make it unknown. */
  freshConnection?: boolean
  /**
   * Called once, when the write's turn has come and just before it leaves. Until then it has surely not been
   * sent, however long it waited; where this throws, it never is.
   */
  beforeSend?: () => void | Promise<void>
}

/** A record as the service returned it; numbers as `parseLossless` gives them. */
export type Returned = Record<string, unknown>
/** What is sent; `JSON.rawJSON` numbers leave digit for digit. */
export type Body = Readonly<Record<string, unknown>>

/**
 * Every method throws one of the classes of errors.ts, or the reason of an aborted signal. Reads are tried up
 * to 8 times; writes are sent once, but for a 401 with a token that has been replaced meanwhile.
 */
export interface Billing {
  list(query: ListQuery): Promise<ListPage>
  createRetention(body: Body, options?: WriteOptions): Promise<Returned>
  createProduct(body: Body, options?: WriteOptions): Promise<Returned>
  createAddon(body: Body, options?: WriteOptions): Promise<Returned>
  updateSubscription(id: string, body: Body, options?: WriteOptions): Promise<Returned>
  updateContact(id: string, body: Body, options?: WriteOptions): Promise<Returned>
  resumeSubscription(
    id: string,
    body: { readonly next_billing?: string },
    options?: WriteOptions,
  ): Promise<Returned>
  deleteOrder(id: string, options?: WriteOptions): Promise<void>
  getCreditNote(id: string, options?: ReadOptions): Promise<FetchedDocument>
  getCancellation(id: string, options?: ReadOptions): Promise<FetchedDocument>
  /**
   * The same client, whose requests also stay under a rate of their own (a run's share). The object is read
   * anew for every request: change its number, and the new rate holds within a second.
   */
  limited(share: Readonly<Share>): Billing
}

export function createBilling(settings: BillingSettings): Billing {
  const { concurrency = 4, workspaceHeader = 'x-simple-workspace' } = settings
  const transport = createTransport({
    baseUrl: settings.baseUrl,
    headers: {
      [workspaceHeader]: settings.workspace,
      // Absent means live; a service that takes any text for true must not be sent `false`.
      ...(settings.testMode && { [settings.testModeHeader ?? 'x-service-test-mode']: 'true' }),
    },
    concurrency,
    timeoutSeconds: settings.timeoutSeconds ?? 30,
    maxResponseBytes: settings.maxResponseBytes ?? 8 * 1024 * 1024,
  })
  const limiter = new RateLimiter({ share: settings.rate ?? { requestsPerSecond: 10 }, concurrency })
  const callsOn = (lanes: readonly Lane[]) =>
    createCalls({
      transport,
      limiter,
      lanes,
      authorization,
      onRequest: settings.onRequest,
      readWaitMs: settings.readWaitMs ?? fullJitter,
    })
  const authorization = new Authorization(settings.token)
  const onLanes = (lanes: readonly Lane[]): Billing => ({
    ...operations(callsOn(lanes)),
    limited: (share) => onLanes([...lanes, new Lane(share)]),
  })
  return onLanes([])
}

function operations({ read, write }: Calls): Omit<Billing, 'limited'> {
  const get = (operation: string, path: string, options?: ReadOptions) =>
    read({ operation, path, ...options }, toDocument)
  const send = (operation: string, request: `${'POST' | 'PATCH'} /${string}/`, sent: Sent) => {
    const method = request.startsWith('POST') ? 'POST' : 'PATCH'
    const path = request.slice(method.length + 1)
    return write({ operation, method, path, body: sent.body, ...sent.options }, toRecord)
  }
  return {
    list: ({ resource, signal, tries, beforeSend, ...query }) => {
      const operation = `list ${resource.name}`
      const { path } = resource
      return read({ operation, path, query: toQuery(query), signal, tries, beforeSend }, toListPage)
    },
    getCreditNote: async (id, options) => get('get credit note', at('creditnotes', id), options),
    getCancellation: async (id, options) => get('get cancellation', at('cancellations', id), options),
    createRetention: (body, options) => send('create retention', 'POST /retentions/', { body, options }),
    createProduct: (body, options) => send('create product', 'POST /products/', { body, options }),
    createAddon: (body, options) => send('create addon', 'POST /addons/', { body, options }),
    updateSubscription: async (id, body, options) =>
      send('update subscription', `PATCH ${at('subscriptions', id)}`, { body, options }),
    updateContact: async (id, body, options) =>
      send('update contact', `PATCH ${at('contacts', id)}`, { body, options }),
    resumeSubscription: async (id, body, options) =>
      send('resume subscription', `POST ${at('subscriptions', id)}resume/`, { body, options }),
    deleteOrder: async (id, options) =>
      write(
        { operation: 'delete order', method: 'DELETE', path: at('orders', id), ...options },
        expectNothing,
      ),
  }
}

interface Sent {
  body: Body
  options: WriteOptions | undefined
}

function toQuery(query: Omit<ListQuery, 'resource' | 'signal' | 'tries'>): Record<string, string> {
  return {
    ...query.filters,
    page: String(query.page),
    page_size: String(query.pageSize),
    ...(query.ordering !== undefined && { ordering: query.ordering }),
  }
}

/** An id is one part of a path; `..` would address something else. */
function at(collection: string, id: string): `/${string}/` {
  if (id === '' || id === '.' || id === '..')
    throw new TypeError(`"${id}" can't be an id of /${collection}/; name the record`)
  return `/${collection}/${encodeURIComponent(id)}/`
}
