/** The longest list and the longest sentence kept of what the service said: errors are read by people. */
const mostSentences = 20
const longestSentence = 300
/** Longer than any field of the interface. */
const longestName = 100
/** Deeper than any form of the interface, lists counted too; a hostile body must not exhaust the stack. */
const deepest = 20

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keys that name no field: what is under them concerns the whole request. */
const nameless = new Set(['detail', 'non_field_errors'])

/**
 * The sentences of an error body, each with the field it is about: `lines.2.amount: A valid number is required.`
 * Places in a list count from 1, as people do. `body` is the parsed JSON, or the text of what is no JSON.
 */
export function toWords(body: unknown): string[] {
  const words: string[] = []
  collect({ value: body, path: [], depth: 0, words })
  return words
}

interface Place {
  value: unknown
  path: readonly string[]
  depth: number
  words: string[]
}

function collect({ value, path, depth, words }: Place): void {
  if (words.length >= mostSentences || depth > deepest) return
  const into = (item: unknown, within: readonly string[]) =>
    collect({ value: item, path: within, depth: depth + 1, words })
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries())
      into(item, isObject(item) ? [...path, String(index + 1)] : path)
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) into(item, pathInto(path, key))
  } else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    const sentence = toSentence(String(value))
    if (sentence !== '') words.push(path.length === 0 ? sentence : `${path.join('.')}: ${sentence}`)
  }
}

/** Errors of a list of scalars come as `{"0": [...]}`, counted from 0. */
function pathInto(path: readonly string[], key: string): readonly string[] {
  if (nameless.has(key)) return path
  return [...path, /^\d{1,6}$/.test(key) ? String(Number(key) + 1) : shortened(key)]
}

const shortened = (name: string) => (name.length > longestName ? `${name.slice(0, longestName)}...` : name)

/** What has no end ends with the page or the next tag: to look for it further on again and again takes seconds. */
const tags = /<(style|script)[^]*?(?:<\/\1>|$)|<[^<>]*>/gi

function toSentence(text: string): string {
  const markup = /^\s*<(?:!doctype|html|\?xml)/i.test(text)
  const plain = markup ? text.slice(0, 20_000).replaceAll(tags, ' ') : text
  const line = plain.slice(0, 5000).replaceAll(/\s+/g, ' ').trim()
  return line.length > longestSentence ? `${line.slice(0, longestSentence)}...` : line
}
