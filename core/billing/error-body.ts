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

/** Deeper than any error body of the API, including lists; a hostile body must not exhaust the stack. */
const maxDepth = 20

/**
 * Whether there are lists of sentences under the fields of an object; the service never sends a bare sentence. A list of
 * items has one object per item, empty if the item is valid.
 */
function hasSentences(value: unknown, depth = 0): boolean {
  if (depth > maxDepth) return false
  const isFaulty = (item: unknown) => hasSentences(item, depth + 1)
  if (isRecord(value)) return Object.keys(value).length > 0 && Object.values(value).every(isFaulty)
  if (!Array.isArray(value) || value.length === 0) return false
  if (value.every((item) => typeof item === 'string')) return true
  const items = value.filter((item) => !isRecord(item) || Object.keys(item).length > 0)
  return items.length > 0 && items.every((item) => isRecord(item) && isFaulty(item))
}

/** Limits on the messages kept from an error reply, because people read them. */
const maxSentences = 20
const maxSentenceLength = 300
/** Longer than any field name of the API. */
const maxNameLength = 100

/** Keys that are not fields: their messages concern the whole request. */
const fieldless = new Set(['detail', 'non_field_errors'])

/**
 * The messages of an error body, each with its field: `lines.2.amount: A valid number is required.` Positions in lists
 * count from 1. `body` is the parsed JSON, or the text if it is not JSON.
 *
 * `token` is replaced before anything is shortened, so that not even a part of it remains, and after JSON is parsed, which
 * may contain it with escapes.
 */
export function toMessages(body: unknown, token: string): string[] {
  const messages: string[] = []
  const hide = (text: string) => text.replaceAll(token, '***')
  function collect(value: unknown, path: readonly string[], depth: number): void {
    if (messages.length >= maxSentences || depth > maxDepth) return
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries())
        collect(item, isRecord(item) ? [...path, String(index + 1)] : path, depth + 1)
    } else if (isRecord(value)) {
      for (const [key, item] of Object.entries(value)) collect(item, pathInto(path, hide(key)), depth + 1)
    } else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      const sentence = toSentence(hide(String(value)))
      if (sentence !== '') messages.push(path.length === 0 ? sentence : `${path.join('.')}: ${sentence}`)
    }
  }
  collect(body, [], 0)
  return messages
}

/** Errors in a list of scalars come as `{"0": [...]}`, counted from 0. */
function pathInto(path: readonly string[], key: string): readonly string[] {
  if (fieldless.has(key)) return path
  return [...path, /^\d{1,6}$/.test(key) ? String(Number(key) + 1) : shortened(key)]
}

const shortened = (name: string) =>
  name.length > maxNameLength ? `${name.slice(0, maxNameLength)}...` : name

/** An unclosed element ends with the page or the next tag; searching further each time would take seconds. */
const tags = /<(style|script)[^]*?(?:<\/\1>|$)|<[^<>]*>/gi

function toSentence(text: string): string {
  const markup = /^\s*<(?:!doctype|html|\?xml)/i.test(text)
  const plain = markup ? text.slice(0, 20_000).replaceAll(tags, ' ') : text
  const words = plain.slice(0, 5000).replaceAll(/\s+/g, ' ').trim()
  // The heading of a gateway's page repeats its title.
  const line = markup ? words.replace(/^(.{1,100}) \1(?= |$)/, '$1') : words
  return line.length > maxSentenceLength ? `${line.slice(0, maxSentenceLength)}...` : line
}
