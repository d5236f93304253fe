import type { Reply } from './transport.ts'

/** The text of a body. With a fault it is not exact, and good only to be shown. */
interface ReplyText {
  text: string
  /** Why the bytes are not certain to mean this text. */
  fault?: string
}

/** Strip a byte order mark. */
const strict = new TextDecoder('utf-8', { fatal: true })
const lenient = new TextDecoder()

const marks = [
  { bytes: [0xff, 0xfe], charset: 'utf-16le' },
  { bytes: [0xfe, 0xff], charset: 'utf-16be' },
]

/**
 * Decodes a body. JSON is UTF-8 (RFC 8259), whatever the header says: a gateway may have added its default there. Only
 * what is not UTF-8 is decoded as its byte order mark or its header says, and never with replacement characters.
 */
export function decodeReply({ bytes, headers }: Pick<Reply, 'bytes' | 'headers'>): ReplyText {
  const type = [headers['content-type']].flat()[0] ?? ''
  const named = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1]?.toLowerCase()
  const marked = marks.find((mark) => mark.bytes.every((byte, at) => bytes[at] === byte))?.charset
  const text = decodeOr(strict, bytes)
  // UTF-16 and UTF-32 may be valid UTF-8, with a NUL in every other place. JSON has none.
  if (text !== undefined && !text.includes('\0')) return { text }
  const charset = marked ?? named
  const shown = lenient.decode(bytes)
  if (charset === undefined)
    return { text: shown, fault: 'its text is not UTF-8, and its Content-Type names no charset' }
  const decoder = decoderOf(charset)
  if (decoder === undefined) return { text: shown, fault: `its charset ${charset} is unknown` }
  const decoded = decodeOr(decoder, bytes)
  // A byte for which a charset has no letter becomes one of these control characters, which no text needs.
  if (decoded === undefined || /[\u0080-\u009f]/.test(decoded))
    return { text: shown, fault: `its text is not valid ${charset}` }
  return { text: decoded }
}

function decodeOr(decoder: typeof lenient, bytes: Uint8Array): string | undefined {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

function decoderOf(charset: string): typeof lenient | undefined {
  try {
    return new TextDecoder(charset, { fatal: true })
  } catch {
    return undefined
  }
}
