import type { Fault } from '../problems.ts'

/** Letters that nobody sees: equal ids differ by them, and names of columns do not match. */
const invisible = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/gu

/** The first letter or space in a text that cannot be told from nothing or from a plain space. */
const hiddenLetter = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\u2800]|(?! )\s/u

/** Almost every cell; saves the slower checks. */
const isPlain = (text: string) => !/[^\x20-\x7e]/.test(text)

export const isBlank = (cell: string): boolean =>
  cell.trim() === '' || (!isPlain(cell) && cell.replace(invisible, '').trim() === '')

/** A name on one line, as a person sees it. */
export const readableName = (name: string): string =>
  name
    .replace(invisible, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()

/** The form in which names are compared. */
export const comparableName = (name: string): string => readableName(name).normalize('NFC').toLowerCase()

/**
 * What nobody sees in a cell that is not free text. `isText`: an id or a word, where other spaces and accents that are
 * stored apart count, too.
 */
export function invisibleFault(text: string, { isText }: { isText: boolean }): Fault | undefined {
  if (isPlain(text)) return undefined
  const seen = text.replace(invisible, '')
  const fix = isText ? seen.replace(/[\s\p{Cc}]/gu, ' ').normalize('NFC') : seen
  if (fix === text) return undefined
  const point = hiddenLetter.exec(text)?.[0].codePointAt(0)
  const message =
    point === undefined
      ? 'has an accent that is stored as a letter of its own'
      : `has an invisible letter (U+${point.toString(16).toUpperCase().padStart(4, '0')})`
  return { rule: 'invisible', message, fix: fix.trim() }
}
