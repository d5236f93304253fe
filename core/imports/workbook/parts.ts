import { SaxesParser } from 'saxes'
import type { Readable } from 'node:stream'
import { type Entry, openPromise } from 'yauzl'
import { InvalidFile } from '../errors.ts'

/** Far more than any workbook has: an entry per sheet, plus its drawings, comments and images. */
const mostEntries = 10_000

/** The parts of an .xlsx file, which is a zip archive, by path: without a leading slash, in any letter case. */
export interface Archive extends Disposable {
  has(path: string): boolean
  /** Inflates a part and parses it. Fails if it exceeds `mostBytes`, whatever size the archive claims. */
  read(path: string, mostBytes: number): AsyncGenerator<XmlEvent[]>
}

/** Names of parts have any letter case (ECMA-376, part 2, 6.2.2); some programs write backslashes. */
const plain = (part: string) => part.replaceAll('\\', '/').replace(/^\/+/, '').toLowerCase()

/** @throws {InvalidFile} the archive is damaged, or has a password */
export async function openArchive(path: string, name: string): Promise<Archive> {
  const damaged = (cause: unknown) => {
    if (cause instanceof InvalidFile) return cause
    const { message } = cause as Error
    if (/encrypt/.test(message))
      return new InvalidFile(`${name} is protected by a password. Save it without the password.`, { cause })
    const what = /unsupported/.test(message) ? 'cannot be read' : 'is damaged'
    const why = message.replace(/\.$/, '')
    return new InvalidFile(`${name} ${what}: ${why}. Save it again as .xlsx.`, { cause })
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
  async function* inflate(part: string, mostBytes: number): AsyncGenerator<Buffer> {
    let chunks: Readable | undefined
    try {
      const entry = entries.get(plain(part))
      if (entry === undefined) throw new Error(`it has no ${part}`)
      let bytes = 0
      chunks = await zip.openReadStreamPromise(entry)
      for await (const chunk of chunks as AsyncIterable<Buffer>) {
        bytes += chunk.length
        if (bytes > mostBytes)
          throw new InvalidFile(
            `${name} is too large: ${part} has more than ${(mostBytes / 1024 ** 2).toLocaleString('en')} MB. Split the sheet into several files, or save it as "CSV UTF-8".`,
          )
        yield chunk
      }
    } catch (error) {
      throw damaged(error)
    } finally {
      chunks?.destroy()
    }
  }
  return {
    has: (part) => entries.has(plain(part)),
    read: (part, mostBytes) => readXml(inflate(part, mostBytes), `${name} (${part})`),
    [Symbol.dispose]: () => zip.close(),
  }
}

export type Attributes = Readonly<Record<string, string>>

/**
 * The start of an element with its attributes, or its end with all text directly inside it. Elements are named without
 * the prefix of their root; those of an extension keep theirs, so that nothing takes them for the document's own.
 */
export type XmlEvent =
  | { element: string; attributes: Attributes; text?: undefined }
  | { element: string; attributes?: undefined; text: string }

/**
 * Longest tag or text in characters: no workbook has longer ones, and they would have to be held in memory.
 */
const longestPiece = 1_000_000

/**
 * Parses XML as it arrives, and yields the events of each chunk. Never expands entities of a document type: workbooks
 * have none, and a document type is rejected.
 * @throws {InvalidFile}
 */
async function* readXml(chunks: AsyncIterable<Buffer>, name: string): AsyncGenerator<XmlEvent[]> {
  const refuse = (reason: string): never => {
    throw new InvalidFile(`${name} is damaged: ${reason}. Save it again as .xlsx.`)
  }
  let events: XmlEvent[] = []
  const parser = new SaxesParser()
  const texts: string[] = []
  let sinceLastTag = 0
  /** Of the root, with its colon. */
  let prefix: string | undefined
  const toElement = (tag: string) => (tag.startsWith(prefix ?? '') ? tag.slice(prefix?.length) : tag)
  const addText = (text: string) => {
    if (texts.length > 0) texts[texts.length - 1] += text
  }
  parser.on('error', (error) => refuse(error.message))
  parser.on('doctype', () => refuse('it has a document type'))
  parser.on('text', addText)
  parser.on('cdata', addText)
  parser.on('opentag', ({ name: tag, attributes }) => {
    sinceLastTag = 0
    texts.push('')
    prefix ??= tag.slice(0, tag.indexOf(':') + 1)
    events.push({ element: toElement(tag), attributes })
  })
  parser.on('closetag', ({ name: tag }) => {
    sinceLastTag = 0
    events.push({ element: toElement(tag), text: texts.pop() ?? '' })
  })
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    sinceLastTag += chunk.length
    if (sinceLastTag > longestPiece) refuse('a part of it is longer than a million characters')
    parser.write(decoder.decode(chunk, { stream: true }))
    yield events
    events = []
  }
  parser.write(decoder.decode()).close()
  yield events
}
