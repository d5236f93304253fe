/**
 * Guards cells that a spreadsheet would run as a formula, and reverses it. A cell that starts like a formula
 * gets a `'` prefix, even if it already has one, so removing one `'` always restores the original.
 */

// Spreadsheets in Japanese or Chinese treat full-width signs as signs. Whitespace and invisible characters
// (a byte order mark, a NUL) may be skipped before them.
const runs = /^'*(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
const guarded = /^'+(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
// Not guarded: a spreadsheet shows a number as that number, and a phone number does no harm.
const number = /^\s*[+-]?\d+([.,]\d+)?$/
const phone = /^\s*\+\d[\d ().-]*$/

export const guardFormula = (text: string): string =>
  runs.test(text) && !number.test(text) && !phone.test(text) ? `'${text}` : text

export const unguardFormula = (text: string): string => (guarded.test(text) ? text.slice(1) : text)
