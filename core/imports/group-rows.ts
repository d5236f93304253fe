import type { SourceRow } from './csv/scanner.ts'

/** The rows of a file that form one change. */
export type Unit = [SourceRow, ...SourceRow[]]

/** Groups consecutive rows with equal cells in `by`. Rows whose `by` cells are all empty stay single. */
export async function* groupRows({
  rows,
  by,
}: {
  rows: AsyncIterable<SourceRow>
  /** Column indexes; undefined if every row is its own change. */
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
