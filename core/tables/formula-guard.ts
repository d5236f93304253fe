/**
 * Cells that a spreadsheet would run as a formula, and the way back. A cell gets a `'` in front where it begins
 * as a formula does, also where it has such a `'` already: so taking one off gives back what there was, always.
 */

// Full-width signs are signs to a spreadsheet in Japanese or Chinese; a blank line in front is skipped.
const runs = /^'*[=+\-@＝＋－＠\t\r\n]/
const guarded = /^'+[=+\-@＝＋－＠\t\r\n]/
// Left as they are: a spreadsheet shows a number as that number, and a phone number can do no harm.
const number = /^[+-]?\d+([.,]\d+)?$/
const phone = /^\+\d[\d ().-]*$/

export const guardFormula = (text: string): string =>
  runs.test(text) && !number.test(text) && !phone.test(text) ? `'${text}` : text

export const unguardFormula = (text: string): string => (guarded.test(text) ? text.slice(1) : text)
