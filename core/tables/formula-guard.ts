/**
 * Cells that a spreadsheet would run as a formula, and the way back. A cell gets a `'` in front where it begins
 * as a formula does, also where it has such a `'` already: so taking one off gives back what there was, always.
 */

// Full-width signs are signs to a spreadsheet in Japanese or Chinese. Blanks and what can't be seen (a byte order
// mark, a NUL) may be skipped in front of them.
const runs = /^'*(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
const guarded = /^'+(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
// Left as they are: a spreadsheet shows a number as that number, and a phone number can do no harm.
const number = /^\s*[+-]?\d+([.,]\d+)?$/
const phone = /^\s*\+\d[\d ().-]*$/

export const guardFormula = (text: string): string =>
  runs.test(text) && !number.test(text) && !phone.test(text) ? `'${text}` : text

export const unguardFormula = (text: string): string => (guarded.test(text) ? text.slice(1) : text)
