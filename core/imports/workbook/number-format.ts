/** How a spreadsheet displays a number: plain, as a percentage, or as a date, a time or both. */
export type NumberFormat = 'number' | 'percent' | 'date' | 'time' | 'dateTime'

/** Formats that workbooks use without defining them (ECMA-376, 18.8.30). */
const builtIn = new Map<number, NumberFormat>([
  ...[9, 10].map((id) => [id, 'percent'] as const),
  ...[14, 15, 16, 17, ...range(27, 36), ...range(50, 58)].map((id) => [id, 'date'] as const),
  ...[18, 19, 20, 21, 45, 46, 47].map((id) => [id, 'time'] as const),
  [22, 'dateTime'],
])

/** The format of a number format id; `own` holds the workbook's formats by id. */
export const formatOf = (id: number, own: ReadonlyMap<number, string>): NumberFormat => {
  const code = own.get(id)
  return code === undefined ? (builtIn.get(id) ?? 'number') : classify(code)
}

/** Quoted text, escaped letters, fill and padding letters, colours and conditions; `[h]` is elapsed time. */
const literal = /"[^"]*"|\\.|[_*].|\[(?![hms]+\])[^\]]*\]/gi

function classify(code: string): NumberFormat {
  const [first = ''] = code.replace(literal, '').toLowerCase().split(';')
  if (first === 'general') return 'number'
  const hasTime = /[hs]/.test(first)
  const hasDate = /[dy]/.test(first) || (first.includes('m') && !hasTime)
  if (hasDate) return hasTime ? 'dateTime' : 'date'
  if (hasTime) return 'time'
  return first.includes('%') ? 'percent' : 'number'
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
