import type { SourceRow } from './csv/scanner.ts'

/** The rows of a file that make one change. */
export type Unit = [SourceRow, ...SourceRow[]]

/**
 * Groups consecutive rows that are alike in all cells of `by`. Rows whose cells of `by` are all empty remain alone.
 */
export async function* groupRows({
  rows,
  by,
}: {
  rows: AsyncIterable<SourceRow>
  /** Places of the cells; undefined if every row is a change of its own. */
  by: readonly number[] | undefined
}): AsyncGenerator<Unit> {
  let group: Unit | undefined
  let groupKey: string | undefined
  for await (const row of rows) {
    const key = by === undefined ? undefined : keyOf(row, by)
    if (group !== undefined && key !== undefined && key === groupKey) {
      group.push(row)
      continue
    }
    if (group !== undefined) yield group
    group = [row]
    groupKey = key
  }
  if (group !== undefined) yield group
}

function keyOf({ cells }: SourceRow, by: readonly number[]): string | undefined {
  const key = by.map((index) => (cells[index] ?? '').trim())
  return key.every((cell) => cell === '') ? undefined : JSON.stringify(key)
}
