import { type Answer, notFound } from '../answer.ts'
import type { Call } from '../service.ts'
import { storedAnswer } from './stored-answer.ts'

export function getDocument(name: 'creditnotes' | 'cancellations', call: Call): Answer {
  const record = call.world[name].get(call.id)
  return record === undefined ? notFound() : storedAnswer(200, call.world[name], record)
}

export function deleteOrder(call: Call): Answer {
  return call.world.orders.remove(call.id, call.cause) === undefined ? notFound() : { status: 204 }
}
