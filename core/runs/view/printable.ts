/**
 * Characters that speak to a terminal instead of being shown: C0 but tab and line feed, DEL, C1, and what turns the
 * direction of text or begins a line. A cell, a service or a run id may hold them.
 */
const unprintable = /[^\P{Cc}\t\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Makes text safe for a terminal or a log, with `\u001b` for an escape. JSON text stays the same document. */
export const toPrintable = (text: string): string => text.replaceAll(unprintable, escape)

/** The same for text that must stay on its line, such as a cell of a table. */
export const toPrintableLine = (text: string): string => toPrintable(text).replaceAll('\n', escape)
