/**
 * Our CSV: RFC 4180 with `,`, `\n` and UTF-8. NULL is an empty field and the empty string is `""`, which
 * keeps them apart. A property test compares every cell with csv-stringify's output.
 */

const quotable = /[",\n\r]/

export function quoteCell(text: string): string {
  if (text === '') return '""'
  // The pattern is faster than the text '"', which builds the result piece by piece.
  return quotable.test(text) ? `"${text.replaceAll(/"/g, '""')}"` : text
}

/** For csv-parse: an empty field is null; a quoted empty field is the empty string. */
export const readCell = (text: string, context: { quoting: boolean }): string | null =>
  text === '' && !context.quoting ? null : text
