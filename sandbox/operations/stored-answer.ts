import type { Answer } from '../answer.ts'
import type { Call } from '../service.ts'
import type { Collection } from '../store/collection.ts'
import type { Fields, StoredRecord } from '../store/stored-record.ts'

/** Returns the record as stored now. */
export function storedAnswer(status: number, collection: Collection, record: StoredRecord): Answer {
  return { status, body: collection.source.json(record) }
}

/** The values to store of those sent: all of them, unless a fault changes some. */
export function asStored(call: Call, values: Fields): Fields {
  return Object.assign({}, values, ...call.struck.all('storeOtherwise').map(({ fields }) => fields))
}
