import type { SourceRow } from './csv/scanner.ts'

/** The rows of a file that make one change. */
export type Unit = [SourceRow, ...SourceRow[]]

/**
 * Puts consecutive rows together that belong to one change: those that are alike in all of `by`. Rows that have
 * none of these cells belong to nobody else. Without `by` every row is a change of its own.
 */
export async function* groupRows({
  rows,
  by,
}: {
  rows: AsyncIterable<SourceRow>
  /** Places of the cells; undefined where rows are not grouped. */
  by: readonly number[] | undefined
}): AsyncGenerator<Unit> {
  let group: Unit | undefined
  let key: string | undefined
  for await (const row of rows) {
    const own = by === undefined ? undefined : keyOf(row, by)
    if (group !== undefined && own !== undefined && own === key) {
      group.push(row)
      continue
    }
    if (group !== undefined) yield group
    group = [row]
    key = own
  }
  if (group !== undefined) yield group
}

function keyOf({ cells }: SourceRow, by: readonly number[]): string | undefined {
  const key = by.map((index) => (cells[index] ?? '').trim())
  return key.every((cell) => cell === '') ? undefined : JSON.stringify(key)
}
