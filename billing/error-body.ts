/** What Django REST framework writes beside `detail`. A gateway's problem document has `title`, `type` or `status`. */
const besideDetail: ReadonlySet<string> = new Set(['detail', 'code', 'messages', 'status_code'])

/**
 * Whether the parsed JSON of an error reply has one of the service's own shapes. A gateway in front of the service
 * answers with JSON too (`{"message": "no Route matched"}`), and knows nothing of what the service has done.
 *
 * Any status may come with `{"detail": "..."}`. A refusal of what was sent (400, 409, 422) may instead hold lists of
 * sentences by field, nested as the body was: `{"lines": [{}, {"amount": ["..."]}]}`, or one list of sentences.
 */
export function isServiceError({ status, body }: { status: number; body: unknown }): boolean {
  if (isObject(body) && typeof body['detail'] === 'string')
    return Object.keys(body).every((key) => besideDetail.has(key))
  return (status === 400 || status === 409 || status === 422) && saysSomething(body)
}

/** Deeper than any body of the interface. */
const deepest = 10

/** Lists of sentences, somewhere under the fields of an object; a bare sentence is no form of the service. */
function saysSomething(value: unknown, depth = 0): boolean {
  if (depth > deepest) return false
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((item) => typeof item === 'string')) return true
    return ofObjects(value, depth)
  }
  return isObject(value) && ofFields(value, depth)
}

/** One object an item, empty where nothing is wrong with that item. */
function ofObjects(items: readonly unknown[], depth: number): boolean {
  const faulty = items.filter((item) => !isObject(item) || Object.keys(item).length > 0)
  return faulty.length > 0 && faulty.every((item) => isObject(item) && ofFields(item, depth + 1))
}

function ofFields(fields: Record<string, unknown>, depth: number): boolean {
  const values = Object.values(fields)
  return values.length > 0 && values.every((value) => saysSomething(value, depth + 1))
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
