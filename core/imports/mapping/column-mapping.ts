import type { Layout, LayoutOptions } from './check-columns.ts'
import { shell } from '../../runs/view/shell.ts'
import { createNearestName, nearestName } from '../../tables/nearest-name.ts'
import { checkColumns, findDoubles, findMissing } from './check-columns.ts'
import { eachRow, type FieldTarget, knownNames, namesOf, toTarget } from './field-target.ts'
import type { ImportKind } from '../kinds.ts'
import { aboutColumn, type Problem } from '../problems.ts'

/** What is written beside a file's own columns into results.csv; such a file may come back in. */
export const resultColumns = ['_row', '_status', '_id', '_error', '_sent_at', '_sent', '_look'] as const

/** Lays a file's header out. Says everything that is wrong with it at once. */
export function toLayout(options: LayoutOptions): Layout {
  const { kind, header, mapping, columns } = options
  const placing: Placing = {
    ...options,
    mappedNames: new Map(
      Object.entries(mapping.columns ?? {}).map(([theirs, ours]) => [plain(theirs), ours]),
    ),
    wanted: columns && new Set(columns.map(plain)),
    nearest: createNearestName(() => knownNames(kind)),
  }
  const places = header.map((column, index) =>
    placeColumn(placing, { column: column.trim(), position: index + 1 }),
  )
  const constants = Object.entries(mapping.set ?? {}).map(([name, text]) => toConstant({ kind, name, text }))
  const targets = places.map((place) => ('target' in place ? place.target : undefined))
  const set = constants.filter((constant) => 'target' in constant)
  const faults = [...places, ...constants].flatMap((place) => ('problem' in place ? [place.problem] : []))
  const given = [...targets, ...set.map(({ target }) => target)].filter((target) => target !== undefined)
  return {
    targets,
    constants: set,
    grouped: given.some(({ path }) => path.includes(eachRow)),
    ignored: places.flatMap((place) => ('ignored' in place ? [place.ignored] : [])),
    nameless: header.flatMap((column, index) => (column.trim() === '' ? [index] : [])),
    problems: [
      ...faults,
      ...findDoubles({ header, targets, constants: set }),
      ...findMissing({ ...options, given, faults }),
      ...checkColumns(options, given),
    ],
  }
}

type Place =
  | { target: FieldTarget }
  | { ignored: { column: string; why: string } }
  | { problem: Problem }
  | { nameless: true }

/** What the columns of one header are placed by: a file may have 2,000 of them, and a mapping as many names. */
interface Placing extends LayoutOptions {
  mappedNames: ReadonlyMap<string, string | null>
  wanted: ReadonlySet<string> | undefined
  nearest: (name: string) => string | undefined
}

interface HeaderCell {
  column: string
  position: number
}

function placeColumn(placing: Placing, cell: HeaderCell): Place {
  const { kind, mapping, hasLines, mappedNames, wanted } = placing
  const { column } = cell
  if (column === '') return { nameless: true }
  if ((resultColumns as readonly string[]).includes(column))
    return { ignored: { column, why: 'it is of a results file' } }
  // A name as it is written goes before one with other capitals.
  const isExact = Object.hasOwn(mapping.columns ?? {}, column)
  const mapped = isExact ? mapping.columns?.[column] : mappedNames.get(plain(column))
  if (mapped === null) return { ignored: { column, why: 'the mapping leaves it out' } }
  const target = toTarget({ kind, name: mapped ?? column })
  if (target === undefined) return unknownColumn(placing, { ...cell, mapped })
  if (target.name === 'id' && (kind.does !== 'create' || hasLines === true)) return { target }
  if (target.readOnly && mapped === undefined)
    return { ignored: { column, why: 'only the service writes it' } }
  if (target.readOnly)
    return { problem: aboutColumn(column, { words: `stands for ${mapped}, which only the service writes` }) }
  const isWanted = wanted === undefined || namesOf(target).some((name) => wanted.has(name))
  return isWanted ? { target } : { ignored: { column, why: 'it is not among the columns asked for' } }
}

const plain = (name: string) => name.trim().toLowerCase()

function unknownColumn(
  { kind, nearest }: Placing,
  { column, position, mapped }: HeaderCell & { mapped: string | undefined },
): Place {
  // `_extra`, `_read_at` and the like stand in exports.
  if (mapped === undefined && (kind.foreign.includes(column) || column.startsWith('_')))
    return { ignored: { column, why: 'it is of an export, and no field' } }
  const fix = nearest(mapped ?? column)
  const words =
    mapped === undefined
      ? `is no field of a ${kind.one}. Say what it stands for with ${shell`--map ${`${column}=...`}`}, or leave it out with ${shell`--map ${`${column}=`}`}`
      : `stands for ${mapped}, which is no field of a ${kind.one}`
  return { problem: aboutColumn(column, { words, fix, position }) }
}

function toConstant({
  kind,
  name,
  text,
}: {
  kind: ImportKind
  name: string
  text: string
}): { target: FieldTarget; text: string } | { problem: Problem } {
  const target = toTarget({ kind, name })
  const column = `--set ${name}`
  if (target === undefined)
    return {
      problem: aboutColumn(column, {
        words: `is no field of a ${kind.one}`,
        fix: nearestName(name, knownNames(kind)),
      }),
    }
  if (target.readOnly)
    return { problem: aboutColumn(column, { words: 'is a field that only the service writes' }) }
  return { target, text }
}
