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

/** Why a cell has something that a spreadsheet shows instead of a value. */
export function placeholderMessage(text: string): string | undefined {
  const cell = text.trim()
  if (tooNarrow.test(cell))
    return 'is how a spreadsheet shows a value in a column that is too narrow. Widen the column, and save the file again'
  if (loading.test(cell))
    return 'is what a spreadsheet shows before a value is there. Wait for it, and save the file again'
  return error.test(cell) || errorNames.test(cell) || numberedError.test(cell)
    ? 'is an error of the spreadsheet. Fix its formula, or enter the value'
    : undefined
}
