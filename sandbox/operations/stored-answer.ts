import type { Answer } from '../answer.ts'
import type { Call } from '../service.ts'
import type { Collection } from '../store/collection.ts'
import type { Fields, StoredRecord } from '../store/stored-record.ts'

/** The record as it is stored now. */
export function storedAnswer(status: number, collection: Collection, record: StoredRecord): Answer {
  return { status, body: collection.source.json(record) }
}

/** What is stored of what was sent: all of it, unless a fault says otherwise. */
export function asStored(call: Call, values: Fields): Fields {
  return Object.assign({}, values, ...call.struck.all('storeOtherwise').map(({ fields }) => fields))
}
