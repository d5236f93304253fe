/**
 * Characters that control a terminal instead of being shown: C0 except tab and line feed, DEL, C1, and
 * characters that change text direction or start a line. A cell, a service's message or a run id may contain
 * them.
 */
const unprintable = /[^\P{Cc}\t\n]|[\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu

const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * Makes text safe for a terminal or a log; an escape character becomes `\u001b`. JSON text remains the same
 * document.
 */
export const toPrintable = (text: string): string => text.replaceAll(unprintable, escape)

/** Same, for text that must stay on one line, such as a table cell. */
export const toPrintableLine = (text: string): string => toPrintable(text).replaceAll('\n', escape)
