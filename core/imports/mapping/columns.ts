import type { CellReading } from '../cells/field-value.ts'
import type { CellReader } from '../cells/cell.ts'
import { eachRow, type FieldTarget, type Step } from './field-target.ts'
import type { ImportKind } from '../kinds.ts'
import type { Lookup } from './lookup.ts'

/** How the cells of a column were filled. */
export interface CellTally {
  given: number
  /** Not given on create; left as it is on update. */
  empty: number
  /** `\N`: becomes null. */
  null: number
}

/** A column that is read: what its cells are for, how, and how they were filled so far. */
export interface Column {
  header: string
  index: number
  target: FieldTarget
  tally: CellTally
  /** Undefined where the cell is empty: nothing is given. */
  read(cell: { text: string; row: number }): CellReading | undefined
}

/** What a cell holds that is to be null. */
const nullCell = '\\N'

export function createColumn({
  kind,
  header,
  index,
  target,
  reader,
  lookup,
}: Pick<Column, 'header' | 'index' | 'target'> & {
  kind: ImportKind
  reader: CellReader
  lookup?: Lookup | undefined
}): Column {
  const { meta } = target
  const trimmed = kind.identifiers.includes(target.name)
  const tally: CellTally = { given: 0, empty: 0, null: 0 }
  return {
    header,
    index,
    target,
    tally,
    read({ text, row }) {
      const bare = text.trim()
      if (bare === '') {
        tally.empty += 1
        return undefined
      }
      if (bare === nullCell) {
        tally.null += 1
        return meta.nullable === true
          ? { value: null }
          : { fault: { rule: 'null', words: 'would make it null, and this field can’t be null' } }
      }
      tally.given += 1
      if (lookup === undefined) return reader({ text, meta, row, trimmed })
      const found = lookup(text)
      return 'fault' in found ? found : reader({ text: found.ours, meta, row, trimmed })
    },
  }
}

/**
 * Puts a value at its place in a body; `item` is the place that `eachRow` stands for. Items of which nothing was
 * given leave holes in their list: true where there is one now.
 */
export function put(
  body: Record<string, unknown>,
  path: readonly Step[],
  item: number,
  value: unknown,
): boolean {
  let holder = body as Record<string | number, unknown>
  let hasHole = false
  const last = path.length - 1
  for (let index = 0; index < last; index++) {
    const key = keyOf(path[index], item)
    if (typeof key === 'number') hasHole ||= key > Number(holder['length'])
    holder[key] ??= typeof path[index + 1] === 'string' ? {} : []
    holder = holder[key] as Record<string | number, unknown>
  }
  holder[keyOf(path[last], item)] = value
  return hasHole
}

const keyOf = (step: Step | undefined, item: number) => (step === eachRow ? item : (step ?? ''))

/** A body without the holes of its lists. */
export function closeHoles<T>(value: T): T {
  // `filter` leaves holes out by itself.
  if (Array.isArray(value)) return value.filter(() => true).map(closeHoles) as T
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closeHoles(inner)])) as T
}
