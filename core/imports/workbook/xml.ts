import { SaxesParser } from 'saxes'
import { UnreadableFileError } from '../errors.ts'

export type Attributes = Readonly<Record<string, string>>

/**
 * Receives the elements of a document, named without the prefix of its root. Elements of an extension keep
 * theirs, so that nothing takes them for the document's own.
 */
export interface ElementHandler {
  open?(element: string, attributes: Attributes): void
  /** `text`: all text directly inside the element. */
  close?(element: string, text: string): void
}

/**
 * Longest tag or text in characters: no workbook has longer ones, and they would have to be held in memory.
 */
const longestPiece = 1_000_000

/**
 * Parses XML as it arrives, and yields what the handler emits. Never expands entities of a document type:
 * workbooks have none, and a document type is rejected.
 * @throws {UnreadableFileError}
 */
export async function* readXml<T>(
  chunks: AsyncIterable<Buffer>,
  name: string,
  createHandler: (emit: (item: T) => void) => ElementHandler,
): AsyncGenerator<T> {
  const refuse = (reason: string): never => {
    throw new UnreadableFileError(`${name} is damaged: ${reason}. Save it again as .xlsx.`)
  }
  let items: T[] = []
  const handler = createHandler((item) => items.push(item))
  const parser = new SaxesParser()
  const texts: string[] = []
  let sinceLastTag = 0
  /** Of the root, with its colon. */
  let prefix = ''
  let hasRoot = false
  const ownName = (tag: string) => (tag.startsWith(prefix) ? tag.slice(prefix.length) : tag)
  parser.on('error', (error) => refuse(error.message))
  parser.on('doctype', () => refuse('it has a document type'))
  parser.on('text', (text) => {
    if (texts.length > 0) texts[texts.length - 1] += text
  })
  parser.on('cdata', (text) => {
    if (texts.length > 0) texts[texts.length - 1] += text
  })
  parser.on('opentag', ({ name: tag, attributes }) => {
    sinceLastTag = 0
    texts.push('')
    if (!hasRoot) prefix = tag.slice(0, tag.indexOf(':') + 1)
    hasRoot = true
    handler.open?.(ownName(tag), attributes)
  })
  parser.on('closetag', ({ name: tag }) => {
    sinceLastTag = 0
    handler.close?.(ownName(tag), texts.pop() ?? '')
  })
  let decoder = new TextDecoder()
  let isFirst = true
  for await (const chunk of chunks) {
    if (isFirst) decoder = new TextDecoder(encodingOf(chunk))
    isFirst = false
    sinceLastTag += chunk.length
    if (sinceLastTag > longestPiece) refuse('a part of it is longer than a million characters')
    parser.write(decoder.decode(chunk, { stream: true }))
    const ready = items
    items = []
    yield* ready
  }
  parser.write(decoder.decode()).close()
  yield* items
}

/** Parts are UTF-8 or UTF-16 (ECMA-376, part 2, 6.4.2), which begins with a byte order mark. */
function encodingOf(chunk: Buffer): string {
  const start = chunk.toString('latin1', 0, 2)
  return start === '\u00ff\u00fe' ? 'utf-16le' : start === '\u00fe\u00ff' ? 'utf-16be' : 'utf-8'
}
