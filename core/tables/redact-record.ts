import { isRecord } from './json-value.ts'
import { redact, type HashValue } from './private-field.ts'
import { extraColumn, type FieldPlan, type ObjectPlan } from './encoder/row-plan.ts'

/**
 * Removes what is private from a record that gets no row. A value of another shape than its schema's is
 * removed if anything below it is private, because the private part cannot be located.
 */
export function redactRecord(record: unknown, plan: ObjectPlan, hash: HashValue): unknown {
  const { rule } = plan
  if (rule === undefined) return record
  if (!isRecord(record)) return undefined
  const fields = new Map(plan.fields.map((field) => [field.key, field]))
  const keepsUnknown = rule.below.get(extraColumn)?.action !== 'exclude'
  // Without a prototype, `__proto__` is an ordinary field.
  const kept: Record<string, unknown> = Object.create(null)
  for (const [key, value] of Object.entries(record)) {
    const field = fields.get(key)
    let left: unknown
    if (field !== undefined) left = redactField(value, field, hash)
    else if (keepsUnknown || key === 'id') left = redact(value, rule.below.get(key), hash)
    if (left !== undefined) kept[key] = left
  }
  return kept
}

function redactField(value: unknown, field: FieldPlan, hash: HashValue): unknown {
  if (field.shape === 'hidden') return undefined
  if (value === null) return null
  if (field.shape === 'cell') return redact(value, field.rule, hash)
  if (field.shape === 'object') return redactRecord(value, field.object, hash)
  const { object } = field.row
  if (!Array.isArray(value)) return object.rule === undefined ? value : undefined
  return value.map((item: unknown) => redactRecord(item, object, hash) ?? null)
}
