/** A client for the thirteen operations of the API (interface, section 4). */
import {
  Authorization,
  createCalls,
  type Calls,
  type CallSettings,
  type ReadOptions,
  type TokenSource,
  type WriteOptions,
} from './calls.ts'
import type { FleetRate, Share } from './fleet-rate.ts'
import { RateLimiter, type Spacing } from './rate-limit.ts'
import {
  expectNothing,
  type FetchedDocument,
  type ListPage,
  toDocument,
  toListPage,
  toRecord,
} from './reply.ts'
import type { ListResource } from './resources/filters.ts'
import type { DocumentName } from './resources/lists.ts'
import type { TroubleWatch } from './trouble-watch.ts'
import { createTransport, type Request } from './transport.ts'

export interface BillingSettings extends CallSettings {
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
}

export interface ListQuery extends ReadOptions, Pick<Request, 'beforeSend'> {
  resource: ListResource
  /** From 1. */
  page: number
  /** 1 to 100. */
  pageSize: number
  ordering?: string
  filters?: Readonly<Record<string, string>>
  /** A reply that a cache has kept since before the call counts as lost: it says nothing about now. */
  fresh?: boolean
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
  /** A document that the service returns only by id. */
  getDocument(name: DocumentName, id: string, options?: ReadOptions): Promise<FetchedDocument>
  /**
   * The same client with an additional rate limit (a run's share). The object is read for every request: a changed rate
   * applies within a second.
   */
  limited(share: Readonly<Share>): Billing
  /** The same client, whose requests tell `watch` why they fail or wait. */
  watched(watch: TroubleWatch): Billing
}

export function createBilling(settings: BillingSettings): Billing {
  const { concurrency = 4, fleet } = settings
  const transport = createTransport({
    baseUrl: settings.baseUrl,
    headers: {
      'x-simple-workspace': settings.workspace,
      // No header means live; `false` is not sent, because a service might take any text for true.
      ...(settings.testMode && { 'x-service-test-mode': 'true' }),
    },
    concurrency,
    timeoutSeconds: settings.timeoutSeconds ?? 30,
    maxResponseBytes: settings.maxResponseBytes ?? 8 * 1024 * 1024,
  })
  const gate = new RateLimiter({ share: settings.rate ?? { requestsPerSecond: 10 }, concurrency, fleet })
  const shared = { ...settings, transport, gate, authorization: new Authorization(settings.token) }
  const createWith = (spacings: readonly Spacing[], watch?: TroubleWatch): Billing => ({
    ...operations(createCalls({ ...shared, spacings, watch })),
    limited: (share) => createWith([...spacings, gate.spacingOf(share)], watch),
    watched: (watcher) => createWith(spacings, watcher),
  })
  return createWith([])
}

function operations({ read, write }: Calls): Omit<Billing, 'limited' | 'watched'> {
  const post = (operation: string, path: string, body: Body, options?: WriteOptions) =>
    write({ operation, method: 'POST', path, body, ...options }, toRecord)
  const patch = (operation: string, path: string, body: Body, options?: WriteOptions) =>
    write({ operation, method: 'PATCH', path, body, ...options }, toRecord)
  return {
    list: ({ resource, page, pageSize, ordering, filters, fresh, ...options }) => {
      const since = fresh === true ? performance.now() : undefined
      const sizes = { page: String(page), page_size: String(pageSize) }
      const query = { ...filters, ...sizes, ...(ordering !== undefined && { ordering }) }
      return read(
        { operation: `list ${resource.name}`, path: `/${resource.name}/`, query, ...options },
        (...reply) => toListPage(...reply, since),
      )
    },
    getDocument: async (name, id, options) =>
      read({ operation: `get ${name}`, path: recordPath(name, id), ...options }, toDocument),
    createRetention: (...sent) => post('create retention', '/retentions/', ...sent),
    createProduct: (...sent) => post('create product', '/products/', ...sent),
    createAddon: (...sent) => post('create addon', '/addons/', ...sent),
    updateSubscription: async (id, ...sent) =>
      patch('update subscription', recordPath('subscriptions', id), ...sent),
    updateContact: async (id, ...sent) => patch('update contact', recordPath('contacts', id), ...sent),
    resumeSubscription: async (id, ...sent) =>
      post('resume subscription', `${recordPath('subscriptions', id)}resume/`, ...sent),
    deleteOrder: async (id, options) =>
      write(
        { operation: 'delete order', method: 'DELETE', path: recordPath('orders', id), ...options },
        expectNothing,
      ),
  }
}

/** The path of a record. An id is a single path segment; `..` would address something else. */
function recordPath(collection: string, id: string): `/${string}/` {
  if (id === '' || id === '.' || id === '..')
    throw new TypeError(`"${id}" can't be an id of /${collection}/; name the record`)
  return `/${collection}/${encodeURIComponent(id)}/`
}
