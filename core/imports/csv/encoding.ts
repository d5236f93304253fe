/**
 * The encodings that spreadsheets and databases in Latin America write. Nothing in a file that is not UTF-8 names its
 * encoding: its words show it, or `--encoding` says it.
 */
export const encodings = [
  'utf-8',
  'windows-1252',
  'windows-1250',
  'iso-8859-15',
  'macintosh',
  'cp850',
  'cp437',
] as const
export type Encoding = (typeof encodings)[number]

/** The letters from byte 80 on of code pages that `TextDecoder` lacks. */
const codePages: Partial<Record<Encoding, string>> = {
  cp850:
    'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0',
  cp437:
    'ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0',
}

const allBytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))

/** Decodes a text chunk by chunk; without a chunk, its end. */
export function createDecoder(encoding: Encoding): (chunk?: Buffer) => string {
  const page = codePages[encoding]
  if (page !== undefined)
    return (chunk) =>
      (chunk?.toString('latin1') ?? '').replace(/[\x80-\xff]/g, (byte) =>
        page.charAt(byte.charCodeAt(0) - 128),
      )
  const decoder = new TextDecoder(encoding)
  return (chunk) => decoder.decode(chunk, { stream: chunk !== undefined })
}

/** The byte of each letter of an encoding of one byte. */
const bytesOf = (encoding: Encoding) =>
  new Map(Array.from(createDecoder(encoding)(allBytes), (letter, byte) => [letter, byte]))

/** Encodes text in a file's encoding. A letter that the encoding lacks becomes `?`. */
export function createEncoder(encoding: Encoding): (text: string) => Buffer {
  if (encoding === 'utf-8') return (text) => Buffer.from(text)
  const bytes = bytesOf(encoding)
  const unknown = '?'.charCodeAt(0)
  return (text) => Buffer.from(Array.from(text, (letter) => bytes.get(letter) ?? unknown))
}

/** Shows the bytes of a text as Latin-1 does. A letter that the encoding lacks becomes a NUL. */
function createToLatin1(encoding: Encoding, letters: RegExp): (text: string) => string {
  const bytes = bytesOf(encoding)
  return (text) => text.replace(letters, (letter) => String.fromCharCode(bytes.get(letter) ?? 0))
}

/** A word as each encoding reads it. */
export interface Reading {
  row: number
  texts: readonly { text: string; encodings: readonly Encoding[] }[]
}

/** Why a file cannot be read: the word that no single encoding reads, or that several may. */
export type EncodingDoubt = { mixed: readonly Reading[] } | { unclear: Reading }

/** Distinct words that are compared; memory stays bounded. */
const mostWords = 20_000

/**
 * Finds out whether a file that is not UTF-8 is Windows-1252. Rows are added as Windows-1252 reads them.
 * `isCut`: its last byte may be half a letter of UTF-8. `isClassicMac`: its lines end with CR alone.
 */
export function createEncodingCheck(options: { mustBeUtf8: boolean; isCut: boolean; isClassicMac: boolean }) {
  const words = new Map<string, Place>()
  /** The first word with letters of UTF-8, and the first that is not UTF-8. */
  let utf8: Place | undefined
  let other: Place | undefined
  let others = 0
  return {
    add({ row, cells }: { row: number; cells: readonly string[] }): void {
      for (const cell of cells) {
        if (!beyondAscii.test(cell)) continue
        for (const [word] of cell.matchAll(wordsBeyondAscii)) {
          if (words.has(word)) continue
          const place = { row, bytes: toLatin1(word) }
          if (words.size < mostWords) words.set(word, place)
          const rest = place.bytes.replace(utf8Letters, '')
          if (rest !== place.bytes) utf8 ??= place
          if (!beyondAscii.test(rest)) continue
          other ??= place
          others += 1
        }
      }
    },
    conclude(): EncodingDoubt | undefined {
      const { mustBeUtf8, isCut, isClassicMac } = options
      if (other !== undefined) {
        const both = ['utf-8', 'windows-1252'] as const
        const isHalf = isCut && others === 1 && halfLetter.test(other.bytes)
        if (utf8 !== undefined) return { mixed: [readingOf(utf8, both), readingOf(other, both)] }
        if (mustBeUtf8 || isHalf) return { mixed: [readingOf(other, both)] }
      }
      return oneByteDoubt([...words.values()], isClassicMac)
    },
  }
}

/** The letters below U+0100 have the same bytes in Windows-1252. */
const toLatin1 = createToLatin1('windows-1252', /[\u0100-\uffff]/g)

interface Place {
  row: number
  /** As Latin-1. */
  bytes: string
}

const beyondAscii = /[\x80-\uffff]/
const wordsBeyondAscii = /[A-Za-z\x80-\uffff]*[\x80-\uffff][A-Za-z\x80-\uffff]*/g

/**
 * The bytes of letters and signs in UTF-8 that a sheet in a Latin script has. In Windows-1252, `Ã` may be the last
 * letter of a word in capitals, with a sign behind it (`IRMÃ”`): that is not UTF-8.
 */
const utf8Letters =
  /(?!(?<=[A-Z\xc0-\xde])[\xc2-\xc5](?:[\x85\x92\x94\x96\x97\x99\x9b\xaa\xae\xb0\xb7\xba\xbb](?![A-Za-z\xc0-\xff])|\xa0(?![a-z\xdf-\xff])))[\xc2-\xc5][\x80-\xbf]|\xe2[\x80-\x84][\x80-\xbf]|\xf0\x9f[\x80-\xbf]{2}|\xef\xbb\xbf|\xef\xbf\xbd/g
/**
 * What a text was meant to be that is UTF-8 read in another encoding: as Windows-1252 (`MuÃ±oz`), by a spreadsheet on a
 * Mac (`Mu√±oz`) or in a DOS code page (`Mu├▒oz`). Undefined for any other.
 */
export function rereadAsUtf8(text: string): string | undefined {
  if (!beyondAscii.test(text)) return undefined
  const others = otherReaders.filter(({ first }) => first.test(text))
  // The right encoding reads most of its letters, so it leaves the shortest text.
  return [toLatin1(text), ...others.map(({ toBytes }) => toBytes(text))]
    .flatMap((bytes) => rereadBytes(text, bytes) ?? [])
    .toSorted((a, b) => a.length - b.length)[0]
}

/** `first`: how the encoding shows the first byte of most letters. */
const otherReaders = (
  [
    ['macintosh', /[√¬]/],
    ['cp850', /[├┬]/],
    ['cp437', /[├┬]/],
  ] as const
).map(([encoding, first]) => ({ first, toBytes: createToLatin1(encoding, /[\x80-\uffff]/g) }))

function rereadBytes(text: string, bytes: string): string | undefined {
  let meant = ''
  let at = 0
  for (const { 0: letters, index } of bytes.matchAll(utf8Letters)) {
    meant += text.slice(at, index) + Buffer.from(letters, 'latin1').toString()
    at = index + letters.length
  }
  return at === 0 ? undefined : meant + text.slice(at)
}

const halfLetter = /(?<![A-Z\xc0-\xde])[\xc2\xc3]$|(?<![A-Za-z\x80-\xff])\xe2$/

const letter = String.raw`\p{L}`
const other = String.raw`[^\p{L}\p{M}\p{Nd}]`
/** Signs that stand between two words without a space, or in an abbreviation. */
const signs = '\u00a0’‘“”–—…·´`°®™•«»‹›¨¡¿€§×'
const closers = '’”»›…–—·°®™•²³¹´`€\u00a0'
const openers = '¿¡“‘«‹„–—€•·°®©\u00a0…’´'
const ours = 'áéíóúüñçãõâêôàÁÉÍÓÚÜÑÇÃÕÂÊÔÀªº'

/** Nobody writes this in a word. */
const impossible = new RegExp(
  String.raw`[\u0080-\u009f¤\uf8ff\u2500-\u25ff]|${letter}${other}*[^${letter}\p{M}\p{Nd}${signs}]${other}*${letter}`,
  'u',
)
/** Rare in words of Spanish and Portuguese; another encoding may read a usual word there. */
const unusual = new RegExp(
  [
    `${letter}[${signs}]+${letter}`,
    `${letter}(?![${closers}])${other}$`,
    `^(?![${openers}])${other}${letter}`,
    // Capitals among small letters, and the other way round. Many programs capitalize ASCII only: MUñOZ.
    String.raw`${letter}(?![A-Z])\p{Lu}[a-z]|[a-z](?![A-Z])\p{Lu}|(?![a-záéíóúüñ])\p{Ll}[A-Z]|^(?![A-Z])\p{Lu}[A-Z][a-z]`,
    `(?![A-Za-zµ${ours}])${letter}|^ç|${letter}µ|µ${letter}{3}`,
  ].join('|'),
  'u',
)
/** Read in another encoding than the usual one, a word does not mix capitals and small letters at all. */
const mixedCase = /(?![a-z])\p{Ll}[A-Z]|[A-Z]{2}(?![a-z])\p{Ll}/u

function oneByteDoubt(words: readonly Place[], isClassicMac: boolean): EncodingDoubt | undefined {
  const usual = readerOf('windows-1252')
  const all = words.map((word) => ({ ...word, text: usual(word.bytes) }))
  const broken = all.find(({ text }) => impossible.test(text))
  const odd = all.filter(({ text }) => impossible.test(text) || unusual.test(text))
  const shown = broken ?? odd[0] ?? (isClassicMac ? all[0] : undefined)
  if (shown === undefined) return undefined
  const others = encodings
    .filter((encoding) => encoding !== 'utf-8' && encoding !== 'windows-1252')
    .map((encoding) => ({ encoding, odd: countOdd(encoding, words) }))
  const least = Math.min(...others.map((other) => other.odd), broken === undefined ? odd.length : Infinity)
  const better = others.filter(
    (other) => other.odd === least && other.odd < Infinity && other.odd < odd.length,
  )
  if (broken === undefined && better.length === 0 && !isClassicMac) return undefined
  const possible =
    better.length > 0
      ? better
      : others.filter(({ encoding }) => !impossible.test(readerOf(encoding)(shown.bytes)))
  return { unclear: readingOf(shown, ['windows-1252', ...possible.map(({ encoding }) => encoding)]) }
}

/** The number of words that an encoding reads as unusual ones; infinite if one is impossible. */
function countOdd(encoding: Encoding, words: readonly Place[]): number {
  const read = readerOf(encoding)
  let count = 0
  for (const { bytes } of words) {
    const text = read(bytes)
    if (impossible.test(text)) return Infinity
    if (unusual.test(text) || mixedCase.test(text)) count += 1
  }
  return count
}

const readerOf = (encoding: Encoding) => {
  const decode = createDecoder(encoding)
  if (encoding === 'utf-8') return (bytes: string) => decode(Buffer.from(bytes, 'latin1')) + decode()
  const letters = decode(allBytes)
  return (bytes: string) => bytes.replace(/[\x80-\xff]/g, (byte) => letters.charAt(byte.charCodeAt(0)))
}

function readingOf({ row, bytes }: Place, asked: readonly Encoding[]): Reading {
  const texts = Map.groupBy(asked, (encoding) => readerOf(encoding)(bytes).replace(/\p{Cc}/gu, '\ufffd'))
  return { row, texts: Array.from(texts, ([text, encodings]) => ({ text, encodings })) }
}
