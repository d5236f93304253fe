import { type Answer, json } from '../answer.ts'
import { multiply } from '../data/decimals.ts'
import { numberText } from '../exact-json.ts'
import type { Call } from '../service.ts'
import type { Fields, StoredRecord } from '../store/stored-record.ts'
import { validate } from '../validation.ts'
import { retentionRules } from '../write-rules.ts'
import { asStored, storedAnswer } from './stored-answer.ts'

/** Creates a draft. Duplicates are accepted: the service has no idempotency. */
export function createRetention(call: Call): Answer {
  const { world, body, cause, struck } = call
  const { values, errors } = validate({ rules: retentionRules, body, partial: false })
  if (errors !== undefined) return json(400, errors)
  const others = struck.all('otherClient')
  const another = (when: 'before' | 'after') => {
    for (const other of others) {
      if ((other.when ?? 'before') !== when) continue
      const { supplier, document, number, date } = values
      const fields = { supplier, document, number, date, lines: [], ...other.fields }
      storeRetention({ call, values: fields, cause: { by: 'other client' } })
    }
  }
  another('before')
  const record = storeRetention({ call, values: asStored(call, values), cause })
  another('after')
  return storedAnswer(201, world.retentions, record)
}

function storeRetention(options: { call: Call; values: Fields; cause: Call['cause'] }): StoredRecord {
  const { call, values, cause } = options
  const { retentions } = call.world
  const id = Number(retentions.nextId())
  const lines = Array.isArray(values.lines) ? values.lines : []
  const fields = {
    ...values,
    lines: lines.map((line: Fields, place) => ({ id: id * 10 + place, ...line, total: lineTotal(line) })),
    status: 'draft',
    biller_status: 'pending',
    tax_agency: {},
    local_file: null,
    imported: false,
    test_mode: call.mode === 'test',
  }
  return retentions.create({ cause, fields })
}

function lineTotal(line: Fields): unknown {
  const [amount, quantity] = [numberText(line.amount), numberText(line.quantity) ?? '1']
  const product = amount === undefined ? undefined : multiply(amount, quantity)
  return product === undefined ? null : JSON.rawJSON(product)
}
