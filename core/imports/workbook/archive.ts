import type { Readable } from 'node:stream'
import { type Entry, openPromise } from 'yauzl'
import { UnreadableFileError } from '../errors.ts'

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
