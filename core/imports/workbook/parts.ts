import type { Readable } from 'node:stream'
import { type Entry, openPromise } from 'yauzl'
import { UnreadableFileError } from '../errors.ts'
import { SaxesParser } from 'saxes'

/** Far more than any workbook has: an entry per sheet, plus its drawings, comments and images. */
const mostEntries = 10_000

/** The parts of an .xlsx file, which is a zip archive, by path: without a leading slash, in any letter case. */
export interface Archive {
  has(path: string): boolean
  /** Inflates a part. Fails if it exceeds `mostBytes`, whatever size the archive claims. */
  read(path: string, mostBytes: number): AsyncGenerator<Buffer>
  close(): void
}

export const protectedByPassword =
  'is protected by a password, so it cannot be read. Save it without the password.'

/** Names of parts have any letter case (ECMA-376, part 2, 6.2.2); some programs write backslashes. */
const plain = (part: string) => part.replaceAll('\\', '/').replace(/^\/+/, '').toLowerCase()

/** @throws {UnreadableFileError} the archive is damaged, or has a password */
export async function openArchive(path: string, name: string): Promise<Archive> {
  const damaged = (cause: unknown) => {
    const { message } = cause as Error
    if (/encrypt/.test(message)) return new UnreadableFileError(`${name} ${protectedByPassword}`, { cause })
    const what = /unsupported/.test(message) ? 'cannot be read' : 'is damaged'
    return new UnreadableFileError(`${name} ${what}: ${message}. Save it again as .xlsx.`, { cause })
  }
  // Names are only compared, so those that no file may have, as `/xl/workbook.xml`, do no harm.
  const options = { autoClose: false, lazyEntries: true, decodeStrings: false }
  const zip = await openPromise(path, options).catch((error: unknown) => {
    throw damaged(error)
  })
  const entries = new Map<string, Entry>()
  try {
    for await (const entry of zip.eachEntry()) {
      entries.set(plain(entry.fileNameRaw.toString()), entry)
      if (entries.size > mostEntries) throw new Error('it has too many parts')
    }
  } catch (error) {
    zip.close()
    throw damaged(error)
  }
  return {
    has: (part) => entries.has(plain(part)),
    async *read(part, mostBytes) {
      const entry = entries.get(plain(part))
      if (entry === undefined) throw damaged(new Error(`it has no ${part}`))
      let bytes = 0
      const chunks: Readable = await zip.openReadStreamPromise(entry).catch((error: unknown) => {
        throw damaged(error)
      })
      try {
        for await (const chunk of chunks as AsyncIterable<Buffer>) {
          bytes += chunk.length
          if (bytes > mostBytes)
            throw new UnreadableFileError(
              `${name} is too large: ${part} has more than ${(mostBytes / 1024 ** 2).toLocaleString('en')} MB. Split the sheet into several files, or save it as "CSV UTF-8".`,
            )
          yield chunk
        }
      } catch (error) {
        throw error instanceof UnreadableFileError ? error : damaged(error)
      } finally {
        chunks.destroy()
      }
    },
    close: () => zip.close(),
  }
}

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
