/**
 * What stands in the rows of a workbook for a cell that cannot be read as the sheet shows it, followed by
 * the cell's content as far as it is known. An import refuses such a cell with this reason.
 */
const reasons = {
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
  '#ZERO': 'is a zero that the sheet does not show. Clear the cell, or let the sheet show zeros',
  '#DIGITS':
    'has more digits than a spreadsheet keeps, so the last ones may be lost. Round it in the spreadsheet, or enter it as text',
} as const
export type Unread = keyof typeof reasons

export const unreadText = (why: Unread, content = ''): string => `${why} ${content}`.trim()

const pattern = new RegExp(`^(${Object.keys(reasons).join('|')})( |$)`)

/** Why a cell could not be read; undefined for all other cells. */
export function whyUnread(text: string): string | undefined {
  const why = text.startsWith('#') ? pattern.exec(text)?.[1] : undefined
  return why && reasons[why as Unread]
}
