import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { UnreadableFileError } from '../errors.ts'
import { shownName } from '../file-name.ts'
import { refuseLarge } from '../file-size.ts'
import { detectDelimiter, type Delimiter } from './delimiter.ts'
import { notCsvReason } from './sniff-file-type.ts'

export type Encoding = 'utf-8' | 'windows-1252'

/** The format of a CSV file. Result files are written in the same one. */
export interface Dialect {
  delimiter: Delimiter
  encoding: Encoding
  bom: boolean
  lineEnd: '\n' | '\r\n' | '\r'
  /** The first line is `sep=;`, which spreadsheets obey and hide. */
  hasSeparatorLine?: true
}

/** Enough for the header and some hundred rows, or for the first entries of a zip archive. */
const startBytes = 65_536

/**
 * Detects the format of a file. Reads it to the end once, because a single Windows-1252 letter in the last
 * row decides the encoding; keeps nothing in memory.
 * @throws {UnreadableFileError} it is empty or not a CSV file
 */
export async function detectDialect(path: string): Promise<Dialect> {
  const name = shownName(path)
  const start = await readStart(path)
  const reason = notCsvReason(start)
  if (reason !== undefined) throw new UnreadableFileError(`${name} ${reason}`)
  await refuseLarge(path)
  const bom = start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf
  const encoding = await detectEncoding({ path, name, bom })
  const text = new TextDecoder(encoding).decode(start)
  if (text.trim() === '')
    throw new UnreadableFileError(`${name} is empty. It needs a header and at least one row.`)
  const lineEnd = (/\r\n|\n|\r/.exec(text)?.[0] ?? '\n') as Dialect['lineEnd']
  const separator = separatorLine.exec(text)?.[1] as Delimiter | undefined
  if (separator === undefined) return { delimiter: detectDelimiter(text), encoding, bom, lineEnd }
  return { delimiter: separator, encoding, bom, lineEnd, hasSeparatorLine: true }
}

const separatorLine = /^"?sep=([,;|\t])"?[\r\n]/i

async function readStart(path: string): Promise<Buffer> {
  try {
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(startBytes), 0, startBytes, 0)
    return buffer.subarray(0, bytesRead)
  } catch (cause) {
    throw new UnreadableFileError(`${path} cannot be read: ${(cause as Error).message}.`, { cause })
  }
}

async function detectEncoding({ path, name, bom }: { path: string; name: string; bom: boolean }) {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isUtf8 = true
  let undefinedByte = false
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    if (chunk.includes(0)) throw new UnreadableFileError(`${name} is binary, not text. Import a CSV file.`)
    isUtf8 &&= decodes(() => decoder.decode(chunk, { stream: true }))
    undefinedByte ||= notInWindows1252.some((byte) => chunk.includes(byte))
  }
  isUtf8 &&= decodes(() => decoder.decode())
  if (isUtf8) return 'utf-8'
  if (!bom && !undefinedByte) return 'windows-1252'
  throw new UnreadableFileError(
    `${name} is neither UTF-8 nor Windows-1252. Save it as "CSV UTF-8" and import that file.`,
  )
}

/** Bytes that Windows-1252 does not define. Older code pages (850, Mac) have letters there. */
const notInWindows1252 = [0x81, 0x8d, 0x8f, 0x90, 0x9d]

function decodes(decode: () => string): boolean {
  try {
    decode()
    return true
  } catch {
    return false
  }
}
