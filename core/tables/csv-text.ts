/**
 * Our CSV: RFC 4180 with `,`, `\n` and UTF-8. NULL is an empty field and the empty string is `""`, so that the
 * two stay apart. A property test holds every cell to what csv-stringify writes.
 */

const quotable = /[",\n\r]/

export function quoteCell(text: string): string {
  if (text === '') return '""'
  if (!quotable.test(text)) return text
  return text.includes('"') ? `"${text.replaceAll('"', '""')}"` : `"${text}"`
}

/** For csv-parse: an empty field is null, a quoted empty one is the empty string. */
export const readCell = (text: string, context: { quoting: boolean }): string | null =>
  text === '' && !context.quoting ? null : text
