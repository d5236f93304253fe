import { type Answer, json } from '../answer.ts'
import { toTimestamp } from '../data/times.ts'
import type { Call } from '../service.ts'
import { type Rules, validate } from '../validation.ts'
import { addonRules, productRules } from '../write-rules.ts'
import { asStored, storedAnswer } from './stored-answer.ts'

export const createProduct = (call: Call): Answer =>
  create({
    call,
    name: 'products',
    rules: productRules,
    returned: { plans: [], test_mode: call.mode === 'test' },
  })

export const createAddon = (call: Call): Answer =>
  create({ call, name: 'addons', rules: addonRules, returned: {} })

function create(options: {
  call: Call
  name: 'products' | 'addons'
  rules: Rules
  returned: Record<string, unknown>
}): Answer {
  const { call, name, rules, returned } = options
  const { values, errors } = validate({ rules, body: call.body, partial: false })
  if (errors !== undefined) return json(400, errors)
  const archived = values.status === 'archived' ? toTimestamp(call.service.clock.now()) : null
  const fields = { ...asStored(call, values), archived, ...returned }
  const collection = call.world[name]
  return storedAnswer(201, collection, collection.create({ cause: call.cause, fields }))
}
