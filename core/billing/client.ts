/** A client for the thirteen operations of the API (interface, section 4). */
import { Authorization, type TokenSource } from './authorization.ts'
import { createCalls, fullJitter, type CallObserver, type Calls } from './calls.ts'
import type { FleetRate, Share } from './fleet-rate.ts'
import { RateLimiter, type Spacing } from './rate-limit.ts'
import {
  expectNothing,
  type FetchedDocument,
  type ListPage,
  toDocument,
  toFreshPage,
  toListPage,
  toRecord,
} from './reply.ts'
import type { ListResource } from './resources/resource.ts'
import type { TroubleWatch } from './trouble-watch.ts'
import { createTransport } from './transport.ts'

export interface BillingSettings {
  baseUrl: string
  workspace: string
  testMode: boolean
  token: TokenSource
  /** Rate of the whole process; fractions and Infinity are allowed. Read for every request. Default 10. */
  rate?: Readonly<Share>
  /** Requests in flight at once. Default 4. */
  concurrency?: number
  /** Shares the rate and the concurrency with other workers. */
  fleet?: FleetRate | undefined
  /** Deadline of a whole request. Default 30. */
  timeoutSeconds?: number
  /** Default 8 MiB, many times the size of a page of 100 records; measured after decompression. */
  maxResponseBytes?: number
  workspaceHeader?: string
  testModeHeader?: string
  /** A longer pause that the service asks for fails the request instead. Default: none. */
  mostPauseMs?: number | undefined
  /** Called after every try of every request. */
  onRequest?: CallObserver
  /** Milliseconds to wait after the n-th failed try of a read. Default: full jitter up to 30 s. */
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
  /** Number of tries before it counts as lost. Default 8; fewer if someone waits for the result. */
  tries?: number
  signal?: AbortSignal
  /** A reply that a cache has kept since before the call counts as lost: it says nothing about now. */
  fresh?: boolean
  /** Called just before each request, including retries; if it throws, the request is not sent. */
  beforeSend?: () => void | Promise<void>
  /** Called when a request has failed, before it is retried. */
  onFailure?: () => void | Promise<void>
}

export interface ReadOptions {
  /** As in `ListQuery`. */
  tries?: number
  signal?: AbortSignal
}

export interface WriteOptions {
  signal?: AbortSignal
  /** For writes that cannot be looked up later: a closed keep-alive connection must not make them unknown. */
  freshConnection?: boolean
  /**
   * Called once the request has left the queue and its connection is established, just before it is sent. Until then it
   * has certainly not been sent; if this throws, it never is.
   */
  beforeSend?: () => void | Promise<void>
}

/** A record as the service returned it; numbers as `parseLossless` returns them. */
export type Returned = Record<string, unknown>
/** The body to send; `JSON.rawJSON` numbers keep all their digits. */
export type Body = Readonly<Record<string, unknown>>

/**
 * Every method throws an error of errors.ts, or the reason of an aborted signal. Reads are tried up to 8 times;
 * writes are sent once.
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
   * The same client with an additional rate limit (a run's share). The object is read for every request: a changed rate
   * applies within a second.
   */
  limited(share: Readonly<Share>): Billing
  /** The same client, whose requests tell `watch` why they fail or wait. */
  watched(watch: TroubleWatch): Billing
}

export function createBilling(settings: BillingSettings): Billing {
  const { concurrency = 4, workspaceHeader = 'x-simple-workspace' } = settings
  const transport = createTransport({
    baseUrl: settings.baseUrl,
    headers: {
      [workspaceHeader]: settings.workspace,
      // No header means live; `false` is not sent, because a service might take any text for true.
      ...(settings.testMode && { [settings.testModeHeader ?? 'x-service-test-mode']: 'true' }),
    },
    concurrency,
    timeoutSeconds: settings.timeoutSeconds ?? 30,
    maxResponseBytes: settings.maxResponseBytes ?? 8 * 1024 * 1024,
  })
  const { rate = { requestsPerSecond: 10 }, fleet } = settings
  const gate = new RateLimiter({ share: rate, concurrency, fleet })
  const callsWith = (spacings: readonly Spacing[], watch: TroubleWatch | undefined) =>
    createCalls({
      transport,
      gate,
      spacings,
      authorization,
      onRequest: settings.onRequest,
      readWaitMs: settings.readWaitMs ?? fullJitter,
      watch,
      mostPauseMs: settings.mostPauseMs ?? Infinity,
    })
  const authorization = new Authorization(settings.token)
  const createWith = (spacings: readonly Spacing[], watch?: TroubleWatch): Billing => ({
    ...operations(callsWith(spacings, watch)),
    limited: (share) => createWith([...spacings, gate.spacingOf(share)], watch),
    watched: (watcher) => createWith(spacings, watcher),
  })
  return createWith([])
}

function operations({ read, write }: Calls): Omit<Billing, 'limited' | 'watched'> {
  const get = (operation: string, path: string, options?: ReadOptions) =>
    read({ operation, path, ...options }, toDocument)
  const send = (operation: string, request: `${'POST' | 'PATCH'} /${string}/`, sent: Sent) => {
    const method = request.startsWith('POST') ? 'POST' : 'PATCH'
    const path = request.slice(method.length + 1)
    return write({ operation, method, path, body: sent.body, ...sent.options }, toRecord)
  }
  return {
    list: ({ resource, signal, tries, fresh, beforeSend, onFailure, ...query }) => {
      const since = performance.now()
      const operation = `list ${resource.name}`
      const { path } = resource
      return read(
        { operation, path, query: toQuery(query), signal, tries, beforeSend, onFailure },
        fresh === true ? (request, reply) => toFreshPage(request, reply, since) : toListPage,
      )
    },
    getCreditNote: async (id, options) => get('get credit note', recordPath('creditnotes', id), options),
    getCancellation: async (id, options) => get('get cancellation', recordPath('cancellations', id), options),
    createRetention: (body, options) => send('create retention', 'POST /retentions/', { body, options }),
    createProduct: (body, options) => send('create product', 'POST /products/', { body, options }),
    createAddon: (body, options) => send('create addon', 'POST /addons/', { body, options }),
    updateSubscription: async (id, body, options) =>
      send('update subscription', `PATCH ${recordPath('subscriptions', id)}`, { body, options }),
    updateContact: async (id, body, options) =>
      send('update contact', `PATCH ${recordPath('contacts', id)}`, { body, options }),
    resumeSubscription: async (id, body, options) =>
      send('resume subscription', `POST ${recordPath('subscriptions', id)}resume/`, { body, options }),
    deleteOrder: async (id, options) =>
      write(
        { operation: 'delete order', method: 'DELETE', path: recordPath('orders', id), ...options },
        expectNothing,
      ),
  }
}

interface Sent {
  body: Body
  options: WriteOptions | undefined
}

function toQuery(query: Omit<ListQuery, 'resource' | 'signal' | 'tries' | 'fresh'>): Record<string, string> {
  return {
    ...query.filters,
    page: String(query.page),
    page_size: String(query.pageSize),
    ...(query.ordering !== undefined && { ordering: query.ordering }),
  }
}

/** The path of a record. An id is a single path segment; `..` would address something else. */
function recordPath(collection: string, id: string): `/${string}/` {
  if (id === '' || id === '.' || id === '..')
    throw new TypeError(`"${id}" can't be an id of /${collection}/; name the record`)
  return `/${collection}/${encodeURIComponent(id)}/`
}
