import type { Answer } from './answer.ts'
import { createAddon, createProduct } from './operations/catalogue.ts'
import { updateContact } from './operations/contacts.ts'
import { deleteOrder, getDocument } from './operations/documents.ts'
import { listPage } from './operations/list.ts'
import { createRetention } from './operations/retentions.ts'
import { resumeSubscription, updateSubscription } from './operations/subscriptions.ts'
import { type ListName } from './options.ts'
import type { Call } from './service.ts'

export interface Route {
  /** Method and path in the interface's notation: `PATCH /contacts/{id}/`. */
  operation: string
  answer: (call: Call) => Answer
  /** The list that the operation reads. */
  list?: ListName
}

/** The thirteen operations of interface section 4. */
const operations: Readonly<Record<string, Omit<Route, 'operation'>>> = {
  'DELETE /orders/{id}/': { answer: deleteOrder },
  'POST /subscriptions/{id}/resume/': { answer: resumeSubscription },
  'PATCH /subscriptions/{id}/': { answer: updateSubscription },
  'GET /subscriptions/': { answer: (call) => listPage('subscriptions', call), list: 'subscriptions' },
  'POST /retentions/': { answer: createRetention },
  'GET /retentions/': { answer: (call) => listPage('retentions', call), list: 'retentions' },
  'POST /products/': { answer: createProduct },
  'POST /addons/': { answer: createAddon },
  'PATCH /contacts/{id}/': { answer: updateContact },
  'GET /customers/': { answer: (call) => listPage('customers', call), list: 'customers' },
  'GET /plans/': { answer: (call) => listPage('plans', call), list: 'plans' },
  'GET /creditnotes/{id}/': { answer: (call) => getDocument('creditnotes', call) },
  'GET /cancellations/{id}/': { answer: (call) => getDocument('cancellations', call) },
}

const paths = new Set(Object.keys(operations).map((operation) => operation.split(' ')[1]))
const shape = /^\/([a-z]+)\/(?:([^/]+)\/)?(?:(resume)\/)?$/

/** Finds the operation of a request; without `route`, whether its path exists for another method. */
export function findRoute(
  method: string,
  path: string,
): { route: Route | undefined; operation: string; id: string; known: boolean } {
  const [, resource, id, verb] = shape.exec(path) ?? []
  const template =
    resource === undefined ? path : `/${resource}/${id === undefined ? '' : '{id}/'}${verb ? 'resume/' : ''}`
  const operation = `${method} ${template}`
  const found = operations[operation]
  const route = found && { operation, ...found }
  return { route, operation, id: decode(id ?? ''), known: paths.has(template) }
}

function decode(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
