import type { FieldMeta } from '../../billing/resources/fields.ts'
import { rereadAsUtf8 } from '../csv/encoding.ts'
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

/** `#DIV/0!`, `#¿NOMBRE?`, `#N/D`, `#ЗНАЧ!`: an error in any language; of a data service, with words after it. */
const error = /^[¡¿]?#[¡¿]?(?:[\p{Lu}\d/_.\s]{2,40}[!?]|\p{L}\/\p{L}|N\/A .+|\p{Lu}{2,12}\/0)$/u

/** Errors without a sign at their end. */
const errorNames = /^#(?:GETTING_DATA|OBTENIENDO_DATOS|OBTENDO_DADOS|NV|YOK|HIÁNYZIK)$/

/** LibreOffice: `Err:508`. */
const numberedError =
  /^(?:err|error|erro|erreur|fehler|errore|fout|fel|hiba|chyba|błąd|ошибка)\s?:\s?5\d\d$/iu

const tooNarrow = /^#{2,}$/

/** Google Sheets, while a function waits for its data. */
const loading =
  /^(?:loading|cargando|carregando|chargement(?: en cours)?|caricamento(?: in corso)?|wird geladen|laden|загрузка)(?: (?:data|datos|dados|données|dati))?\s?(?:\.{3}|…)$/iu

/**
 * What stands in the rows of a workbook for a cell that cannot be read as the sheet shows it, followed by
 * the cell's content as far as it is known. An import refuses such a cell with this reason.
 */
const unread = {
  '#NOT CALCULATED':
    'is a formula that no spreadsheet has calculated. Open the file in a spreadsheet and save it again',
  '#DATE':
    'is a date or time, but the column has none. The spreadsheet may have taken another value for one: change the format of the cell, and enter the value again',
  '#TRUTH':
    'is a logical value, but the column has texts. Format the cell as text, and enter the value again',
  '#FORMATTED':
    'is a number that the sheet shows in another form than its digits. Format the cell as text, and enter the value as it is shown',
  '#NOT SHOWN': 'is hidden by the format of its cell. Clear the cell, or change its format',
  '#DIGITS':
    'has more digits than a spreadsheet keeps, so the last ones may be lost. Round it in the spreadsheet, or enter it as text',
} as const
export type Unread = keyof typeof unread

export const unreadText = (why: Unread, content = ''): string => `${why} ${content}`.trim()

const unreadPattern = new RegExp(`^(${Object.keys(unread).join('|')})( |$)`)

/** Why a cell has something that stands for a value that is not there; undefined for all other cells. */
function whyNoValue(text: string): string | undefined {
  const [, why] = unreadPattern.exec(text) ?? []
  if (why !== undefined) return unread[why as Unread]
  const cell = text.trim()
  if (tooNarrow.test(cell))
    return 'is how a spreadsheet shows a value in a column that is too narrow. Widen the column, and save the file again'
  if (loading.test(cell))
    return 'is what a spreadsheet shows before a value is there. Wait for it, and save the file again'
  return error.test(cell) || errorNames.test(cell) || numberedError.test(cell)
    ? 'is an error of the spreadsheet. Fix its formula, or enter the value'
    : undefined
}

/**
 * Why no field accepts a text, whatever its type: it stands for a value that is not there, or has letters that are lost,
 * misread or invisible. `asWritten`: the encoding is known, so no word means another one.
 */
export function refusalOf(
  text: string,
  { meta, trimmed = false, asWritten = false }: { meta: FieldMeta; trimmed?: boolean; asWritten?: boolean },
): Fault | undefined {
  const message = whyNoValue(text)
  if (message !== undefined) return { rule: 'error', message }
  if (isPlain(text)) return undefined
  if (text.includes('\ufffd'))
    return {
      rule: 'encoding',
      message: 'has \ufffd where a program could not read a letter. Enter the letter',
    }
  const meant = asWritten ? undefined : rereadAsUtf8(text)
  if (meant === undefined) return hiddenFault(text, meta, trimmed)
  const misread = 'looks like UTF-8 read in another encoding (--input encoding=utf-8 takes it as it is)'
  return { rule: 'encoding', message: misread, fix: meant }
}

/**
 * What nobody sees. A text for people and JSON may have it, except for a mark of UTF-8. In an id or a word, other spaces
 * and accents that are stored apart count, too.
 */
function hiddenFault(text: string, meta: FieldMeta, trimmed: boolean): Fault | undefined {
  const { kind } = meta
  const isFree = kind === 'json' || kind === 'list' || kind === 'object' || meta.isFreeText === true
  const isText = kind === 'text' || kind === 'timestamp'
  const isWord = trimmed || !isText || meta.values !== undefined || meta.format === 'email'
  const cell = isWord && !isFree ? text.trim() : text
  const seen = cell.replace(isFree ? /\ufeff/g : invisible, '')
  const fix = isText && !isFree ? seen.replace(/[\s\p{Cc}]/gu, ' ').normalize('NFC') : seen
  if (fix === cell) return undefined
  const point = (isFree ? '\ufeff' : hiddenLetter.exec(cell)?.[0])?.codePointAt(0)
  const message =
    point === undefined
      ? 'has an accent that is stored as a letter of its own'
      : `has an invisible letter (U+${point.toString(16).toUpperCase().padStart(4, '0')})`
  return { rule: 'invisible', message, fix: isFree ? fix : fix.trim() }
}
