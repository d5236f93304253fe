import { InvalidFile, quote, say } from '../errors.ts'

/**
 * The encodings that spreadsheets and databases in Latin America write. Nothing in a file that is not UTF-8 names its
 * encoding: its words show it, or the field `encoding` says it.
 */
export const encodings = ['utf-8', 'windows-1252', 'macintosh', 'cp850'] as const
export type Encoding = (typeof encodings)[number]

/** The letters of a DOS code page from byte 0x80 on; `TextDecoder` lacks it. */
const cp850 =
  'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0'

/** Decodes a text chunk by chunk; without a chunk, its end. */
export function createDecoder(encoding: Encoding): (chunk?: Buffer) => string {
  if (encoding === 'cp850')
    return (chunk) =>
      (chunk?.toString('latin1') ?? '').replace(/[\x80-\xff]/g, (byte) =>
        cp850.charAt(byte.charCodeAt(0) - 128),
      )
  const decoder = new TextDecoder(encoding)
  return (chunk) => decoder.decode(chunk, { stream: chunk !== undefined })
}

/** The byte of each letter of an encoding of one byte. */
function bytesOf(encoding: Encoding): ReadonlyMap<string, number> {
  const all = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))
  return new Map(Array.from(createDecoder(encoding)(all), (letter, byte) => [letter, byte]))
}

/** Encodes text in a file's encoding. A letter that the encoding lacks becomes `?`. */
export function createEncoder(encoding: Encoding): (text: string) => Buffer {
  if (encoding === 'utf-8') return (text) => Buffer.from(text)
  const bytes = bytesOf(encoding)
  const unknown = '?'.charCodeAt(0)
  return (text) => Buffer.from(Array.from(text, (letter) => bytes.get(letter) ?? unknown))
}

/** Shows the bytes of a text as Latin-1 does. A letter that the encoding lacks becomes a NUL, which no word has. */
function createToLatin1(encoding: Encoding): (text: string) => string {
  const bytes = bytesOf(encoding)
  return (text) => text.replace(/[\x80-\uffff]/g, (letter) => String.fromCharCode(bytes.get(letter) ?? 0))
}

/** Words given as Latin-1, as another encoding reads them. */
function decodeAll(words: readonly Word[], encoding: Encoding): string[] {
  const decoder = createDecoder(encoding)
  const bytes = Buffer.from(words.map((word) => word.bytes).join('\n'), 'latin1')
  return (decoder(bytes) + decoder()).split('\n')
}

const beyondAscii = /[\x80-\uffff]/
// From the start of a word only: a long one would be searched from each of its letters.
const wordsBeyondAscii = /(?<![A-Za-z\x80-\uffff])[A-Za-z\x80-\uffff]*[\x80-\uffff][A-Za-z\x80-\uffff]*/g

/**
 * The bytes of letters and signs in UTF-8 that a sheet in a Latin script has, each byte as a letter of Latin-1. In
 * Windows-1252, `Ã` may be the last letter of a word in capitals, with a sign behind it (`IRMÃ”`): that is not UTF-8.
 */
const utf8Letters =
  /(?!(?<=[A-Z\xc0-\xde])[\xc2-\xc5](?:[\x85\x92\x94\x96\x97\x99\x9b\xaa\xae\xb0\xb7\xba\xbb](?![A-Za-z\xc0-\xff])|\xa0(?![a-z\xdf-\xff])))[\xc2-\xc5][\x80-\xbf]|\xe2[\x80-\x84][\x80-\xbf]|\xf0\x9f[\x80-\xbf]{2}|\xef\xbb\xbf|\xef\xbf\xbd/g

/** The first bytes of most letters of UTF-8, as each other encoding shows them. */
const misreaders = (
  [
    ['windows-1252', /[ÂÃÄÅâðï]/],
    ['macintosh', /[√¬]/],
    ['cp850', /[├┬]/],
  ] as const
).map(([encoding, first]) => ({ first, toLatin1: createToLatin1(encoding) }))
const toLatin1 = createToLatin1('windows-1252')

/**
 * Undoes reading UTF-8 in another encoding: as Windows-1252 (`MuÃ±oz`), by a spreadsheet on a
 * Mac (`Mu√±oz`) or in a DOS code page (`Mu├▒oz`). Undefined for any other text.
 */
export function rereadAsUtf8(text: string): string | undefined {
  for (const { first, toLatin1 } of misreaders) {
    if (!first.test(text)) continue
    const latin1 = toLatin1(text)
    let meant = ''
    let at = 0
    for (const { 0: letters, index } of latin1.matchAll(utf8Letters)) {
      meant += text.slice(at, index) + Buffer.from(letters, 'latin1').toString()
      at = index + letters.length
    }
    if (at > 0) return meant + text.slice(at)
  }
  return undefined
}

/** A word with the row where it was first seen. */
interface Word {
  row: number
  /** As Latin-1. */
  bytes: string
}

/** Distinct words that are compared; memory stays bounded. */
const mostWords = 20_000

/**
 * Refuses a file that is not UTF-8, unless it is Windows-1252 without a doubt. Rows are added as Windows-1252 reads
 * them. `isClassicMac`: its lines end with CR alone.
 */
export function createEncodingCheck(
  name: string,
  { mustBeUtf8, isClassicMac }: { mustBeUtf8: boolean; isClassicMac: boolean },
) {
  const words = new Map<string, Word>()
  /** The first word with letters of UTF-8, and the first with others. */
  let utf8: Word | undefined
  let other: Word | undefined
  return {
    add({ row, cells }: { row: number; cells: readonly string[] }): void {
      for (const cell of cells) {
        if (!beyondAscii.test(cell)) continue
        for (const [text] of cell.matchAll(wordsBeyondAscii)) {
          if (words.has(text)) continue
          const bytes = toLatin1(text)
          const word = { row, bytes }
          if (words.size < mostWords) words.set(text, word)
          const rest = bytes.replace(utf8Letters, '')
          if (rest !== bytes) utf8 ??= word
          if (beyondAscii.test(rest)) other ??= word
        }
      }
    },
    /** @throws {InvalidFile} */
    conclude(): void {
      if (other !== undefined && (utf8 !== undefined || mustBeUtf8)) {
        const shown = [utf8, other].flatMap((word) =>
          word ? [readingsOf(word, ['utf-8', 'windows-1252'])] : [],
        )
        throw new InvalidFile(
          say`${name} ${utf8 === undefined ? 'is not UTF-8' : `has text in UTF-8, but row ${other.row} is not`}${quote(`: ${shown.join('; ')}`, '')}. Correct the file and save it as "CSV UTF-8", or add --input encoding=windows-1252 to read all rows in that encoding.`,
        )
      }
      const all = [...words.values()]
      const texts = decodeAll(all, 'windows-1252')
      const word =
        all[
          texts.findIndex(
            (text) => isClassicMac || !usual.test(text) || doubtful.test(text.replace(quoted, '')),
          )
        ]
      if (word === undefined) return
      const shown = quote(readingsOf(word, ['windows-1252', 'macintosh', 'cp850']), `row ${word.row}`)
      throw new InvalidFile(
        say`The encoding of ${name} is not clear: ${shown}. Name the right one with --input encoding=, or save the file as "CSV UTF-8".`,
      )
    },
  }
}

/** What sheets in Spanish and Portuguese have, foreign names included. */
const usual = /^[\x20-\x7e\xa0áéíóúüñçãõâêôàÁÉÍÓÚÜÑÇÃÕÂÊÔÀäëïöèòùîûøßªº¿¡´·°®©™«»“”‘’–—…•€§×½²³±µ]*$/

/** A word in quotation marks, whose last is no í. */
const quoted = /^‘[^’]*’$/

/** Where Mac Roman or the DOS code page has an accented letter, and writers put no such sign or letter. */
const doubtful = new RegExp(
  [
    '[A-Za-z][–—’¡\\xa0]+[a-z]|[a-z][–—’¡\\xa0]+$|^[–—][a-z]',
    '[A-Za-z]€[A-Za-zÀ-ÿ]|[a-z]“',
    '[A-Z]{2}[çêîòàâïµ]|[çêîòàâïµ][A-Z]|^[çîò]|^à(?!s?$)|^µ[a-z]{3}',
  ].join('|'),
)

const longestShown = 60

/** `row 5 reads "Mu–oz" in windows-1252, "Muñoz" in macintosh` */
function readingsOf(word: Word, by: readonly Encoding[]): string {
  const readAs = (encoding: Encoding) =>
    decodeAll([{ ...word, bytes: word.bytes.slice(0, longestShown) }], encoding)
      .join('')
      .replace(/\p{Cc}/gu, '\ufffd')
  const texts = Array.from(Map.groupBy(by, readAs), ([text, all]) => `"${text}" in ${all.join(' or ')}`)
  return `row ${word.row} reads ${texts.join(', ')}`
}
