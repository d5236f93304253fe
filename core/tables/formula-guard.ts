/**
 * Guards cells that a spreadsheet would run as a formula, or show as another text, and reverses it. A cell that starts
 * like a formula gets a `'` prefix, even if it already has one, so removing one `'` always restores the original.
 */

// Spreadsheets in Japanese or Chinese treat full-width signs as signs. Whitespace and invisible characters
// (a byte order mark, a NUL) may be skipped before them.
const runs = /^'*(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
const guarded = /^'+(?:[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠])/u
// Not guarded: a spreadsheet shows a number as that number, and a phone number with a space behind its country as it is.
const number = /^\s*[+-]?\d+([.,]\d+)?$/
const phone = /^\s*\+\d+ [\d(][\d ().-]*$/

export const guardFormula = (text: string): string =>
  runs.test(text) && !number.test(text) && !phone.test(text) ? `'${text}` : text

export const unguardFormula = (text: string): string => {
  const [, kept] = constant.exec(text) ?? []
  return kept ?? (guarded.test(text) ? text.slice(1) : text)
}

/** A text as a formula, as in `="01000"`: the one form that a spreadsheet shows as it is written. */
const constant = /^="([^"]*)"$/
/** Longer texts cannot be in a formula. */
const longestConstant = 255
/** Whole numbers that a spreadsheet shows unchanged, in any language: a cell fits 11 digits before it rounds. */
const plain = /^([1-9]\d{0,10}|0)$/
/** Digits with the signs of numbers, dates and times, a power, or a month in letters. */
const numeric = /^\d[\d.,:/ -]*$|^\d+([.,]\d+)?e[+-]?\d+$|^\+\d[\d().-]*$/i
const month =
  '(jan|ene|feb|fev|mar|apr|abr|may|mai|jun|jul|aug|ago|sep|set|oct|out|nov|dec|dic|dez)[a-zç]{0,7}'
const dated = new RegExp(`^\\d{1,4}[-/. ]?${month}([-/. ]?\\d{1,4})?$|^${month}[-/. ]?\\d{1,4}$`, 'i')

/** Guards a text of letters and digits that a spreadsheet would take for a number or a date: `01000`, `3-4`, `1E5`. */
export function guardText(text: string): string {
  const isRead = (numeric.test(text) && !plain.test(text)) || dated.test(text)
  return isRead && text.length <= longestConstant ? `="${text}"` : guardFormula(text)
}
