import type { Encoding } from './dialect.ts'

/** Encodes text in a file's encoding. A letter that Windows-1252 lacks becomes `?`. */
export function createEncoder(encoding: Encoding): (text: string) => Buffer {
  if (encoding === 'utf-8') return (text) => Buffer.from(text)
  const bytes = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte))
  const letters = Array.from(new TextDecoder('windows-1252').decode(bytes))
  const byteOf = new Map(letters.map((letter, byte) => [letter, byte]))
  const unknown = '?'.charCodeAt(0)
  return (text) => Buffer.from(Array.from(text, (letter) => byteOf.get(letter) ?? unknown))
}
