import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { UnreadableFileError } from '../errors.ts'
import { shownName } from '../file-name.ts'
import { refuseLarge } from '../file-size.ts'
import { detectDelimiter, type Delimiter } from './delimiter.ts'
import { createEncodingCheck, type Encoding, type EncodingDoubt, type Reading } from './encoding.ts'
import { type Dialect, readRows } from './read-rows.ts'
import { notCsvReason } from './sniff-file-type.ts'

/** Enough for the header and some hundred rows, or for the first entries of a zip archive. */
const startBytes = 65_536

/**
 * Detects the format of a file. Reads it to the end once, because a single letter in the last row decides the
 * encoding; keeps only its distinct words in memory. `encoding`: how to read a file that is not UTF-8.
 * @throws {UnreadableFileError} it is empty or not a CSV file, or its encoding is in doubt
 */
export async function detectDialect(path: string, encoding?: Encoding): Promise<Dialect> {
  const name = shownName(path)
  const start = await readStart(path)
  const reason = notCsvReason(start)
  if (reason !== undefined) throw new UnreadableFileError(`${name} ${reason}`)
  await refuseLarge(path)
  const bom = start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf
  // All encodings have the same delimiters and line ends.
  const text = start.subarray(bom ? 3 : 0).toString('latin1')
  if (text.trim() === '')
    throw new UnreadableFileError(`${name} is empty. It needs a header and at least one row.`)
  const separator = separatorLine.exec(text)?.[1] as Delimiter | undefined
  const dialect: Dialect = {
    delimiter: separator ?? detectDelimiter(text),
    encoding: 'utf-8',
    bom,
    lineEnd: (/\r\n|\n|\r/.exec(text)?.[0] ?? '\n') as Dialect['lineEnd'],
    ...(separator !== undefined && { hasSeparatorLine: true }),
  }
  const { isUtf8, lastByte } = await readBytes({ path, name })
  if (isUtf8) return dialect
  if (encoding !== undefined && encoding !== 'utf-8' && !bom) return { ...dialect, encoding }
  const check = createEncodingCheck({
    mustBeUtf8: encoding === 'utf-8',
    isCut: lastByte >= 0x80,
    isClassicMac: dialect.lineEnd === '\r',
  })
  const asWindows = { ...dialect, encoding: 'windows-1252' } as const
  for await (const row of readRows({ path, dialect: asWindows })) check.add(row)
  const doubt = check.conclude()
  if (doubt !== undefined) throw toError(name, doubt)
  return asWindows
}

function toError(name: string, doubt: EncodingDoubt): UnreadableFileError {
  if ('unclear' in doubt) {
    const advice = 'Set --encoding to the right one, or save the file as "CSV UTF-8".'
    return new UnreadableFileError(
      `The encoding of ${name} is not clear: ${readingsIn(doubt.unclear)}. ${advice}`,
      {
        withoutValues: `The encoding of ${name} is not clear (row ${doubt.unclear.row}). ${advice}`,
      },
    )
  }
  const where = `${name} has text in UTF-8, but row ${doubt.mixed.at(-1)?.row} is not`
  const advice =
    'Correct the file and save it as "CSV UTF-8", or set --encoding windows-1252 to read all rows in that encoding.'
  return new UnreadableFileError(`${where}: ${doubt.mixed.map(readingsIn).join('; ')}. ${advice}`, {
    withoutValues: `${where}. ${advice}`,
  })
}

const readingsIn = ({ row, texts }: Reading): string =>
  `row ${row} reads ${texts.map(({ text, encodings }) => `"${text}" in ${encodings.join(' or ')}`).join(', ')}`

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

async function readBytes({ path, name }: { path: string; name: string }) {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let isUtf8 = true
  let lastByte = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    if (chunk.includes(0)) throw new UnreadableFileError(`${name} is binary, not text. Import a CSV file.`)
    isUtf8 &&= decodes(() => decoder.decode(chunk, { stream: true }))
    lastByte = chunk.at(-1) ?? lastByte
  }
  return { isUtf8: isUtf8 && decodes(() => decoder.decode()), lastByte }
}

function decodes(decode: () => string): boolean {
  try {
    decode()
    return true
  } catch {
    return false
  }
}
