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
  '#SEPARATED':
    'is a number that the sheet shows with separators, which depend on the language. Set --locale or --decimal, or format the cell without separators',
  '#FORMATTED':
    'is a number that the sheet shows in a form that depends on the spreadsheet. Format the cell as text, and enter the value again',
  '#NOT SHOWN': 'is hidden by the format of its cell. Clear the cell, or change its format',
  '#DIGITS':
    'has more digits than a spreadsheet keeps, so the last ones may be lost. Round it in the spreadsheet, or enter it as text',
} as const
export type Unread = keyof typeof unread

export const unreadText = (why: Unread, content = ''): string => `${why} ${content}`.trim()

const unreadPattern = new RegExp(`^(${Object.keys(unread).join('|')})( |$)`)

/** Why a cell has something that stands for a value that is not there; undefined for all other cells. */
export function whyNoValue(text: string): string | undefined {
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
