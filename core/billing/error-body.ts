import { isRecord } from './lossless-json.ts'
/** Keys that Django REST framework writes with `detail`. A gateway's problem document has `title`, `type` or `status`. */
const detailKeys: ReadonlySet<string> = new Set(['detail', 'code', 'messages', 'status_code'])

/**
 * Whether the JSON of an error reply has one of the service's own formats. A gateway in front of the service may answer
 * with JSON, too (`{"message": "no Route matched"}`), but does not know whether the service acted.
 *
 * Any status may come with `{"detail": "..."}`. A refusal (400, 409, 422) may instead contain lists of sentences by field,
 * nested like the body: `{"lines": [{}, {"amount": ["..."]}]}`, or a single list of sentences.
 */
export function isServiceError({ status, body }: { status: number; body: unknown }): boolean {
  if (isRecord(body) && typeof body['detail'] === 'string')
    return Object.keys(body).every((key) => detailKeys.has(key))
  return (status === 400 || status === 409 || status === 422) && hasSentences(body)
}

/** Deeper than any body of the API. */
const maxDepth = 10

/** Whether there are lists of sentences under the fields of an object; the service never sends a bare sentence. */
function hasSentences(value: unknown, depth = 0): boolean {
  if (depth > maxDepth) return false
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((item) => typeof item === 'string')) return true
    return hasSentencesInItems(value, depth)
  }
  return isRecord(value) && hasSentencesInFields(value, depth)
}

/** One object per item, empty if the item is valid. */
function hasSentencesInItems(items: readonly unknown[], depth: number): boolean {
  const faulty = items.filter((item) => !isRecord(item) || Object.keys(item).length > 0)
  return faulty.length > 0 && faulty.every((item) => isRecord(item) && hasSentencesInFields(item, depth + 1))
}

function hasSentencesInFields(fields: Record<string, unknown>, depth: number): boolean {
  const values = Object.values(fields)
  return values.length > 0 && values.every((value) => hasSentences(value, depth + 1))
}
