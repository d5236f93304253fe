import { createKeyScanner } from '../../tables/key-scanner.ts'
import type { DiskSet } from '../../storage/disk-set.ts'
import type { PublishedTable } from '../manifest/manifest.ts'
import type { RowCheck } from './check-file.ts'

/**
 * Checks that each row of a table has all its cells, a unique key, and a parent in its parent table, which
 * must have been checked before.
 */
export function createTableCheck(options: {
  table: PublishedTable
  delimiter: string
  keys: DiskSet
  /** The service has several records under one id. */
  hasRepeated: boolean
}): RowCheck {
  const { table, delimiter, keys, hasRepeated } = options
  const { name, parent, columns } = table
  const ragged = createFinding()
  const doubled = createFinding()
  const orphaned = createFinding()
  // The first row is the header.
  let rows = -1
  const add = createKeyScanner({
    delimiter,
    keys: table.key.length,
    onRow({ key, cells }) {
      rows++
      if (rows === 0) return
      if (cells !== columns.length) ragged.add(key)
      if (!keys.add(name, key) && !hasRepeated) doubled.add(key)
      // Positions are numbers, so the text before the last delimiter is the parent's key.
      const parentKey = key.slice(0, key.lastIndexOf(delimiter))
      if (parent !== undefined && !keys.has(parent, parentKey)) orphaned.add(key)
    },
  })
  return {
    add,
    end: () => ({
      rows,
      problems: [
        ...ragged.tell((count) => `has ${count} without ${columns.length} cells`),
        ...doubled.tell((count) => `has ${count} whose ${table.key.join(', ')} another has too`),
        ...orphaned.tell((count) => `has ${count} that hang on no row of ${parent}`),
      ],
    }),
  }
}

/** Counts the rows with one kind of fault and keeps the first three. */
function createFinding() {
  let count = 0
  const examples: string[] = []
  return {
    add(key: string) {
      count++
      if (examples.length < 3) examples.push(key)
    },
    tell(say: (count: string) => string): string[] {
      if (count === 0) return []
      const more = count > examples.length ? ', ...' : ''
      return [`${say(count === 1 ? '1 row' : `${count} rows`)}: ${examples.join('; ')}${more}.`]
    },
  }
}
