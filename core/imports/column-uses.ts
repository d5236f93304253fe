import type { FieldMeta } from '../billing/resources/fields.ts'
import { comparableName } from './cells/invisible.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { countMapped, mapColumns } from './mapping/column-mapping.ts'
import { toTarget } from './mapping/field-target.ts'
import type { Mapping } from './mapping/mapping.ts'
import type { ColumnUse } from './workbook/render.ts'

export interface UsesOptions {
  /** Default: the kind that has most of the file's columns. */
  kind?: ImportKindName | undefined
  mapping: Mapping
  columns?: readonly string[] | undefined
  lines?: string | undefined
}

type Uses = (header: readonly string[]) => (ColumnUse | undefined)[]

/** What the columns of an import's files hold: the cells of a workbook are read accordingly. */
export function createColumnUses({ kind: name, mapping, columns, lines }: UsesOptions) {
  const optionsFor = (kind: ImportKind, header: readonly string[]) => ({
    kind,
    header,
    mapping,
    columns,
    hasLines: lines !== undefined,
  })
  const kindOf = (header: readonly string[]): ImportKind => {
    if (name !== undefined) return importKinds[name]
    const count = (kind: ImportKind) => countMapped(optionsFor(kind, header), header)
    return Object.values(importKinds).reduce((best, kind) => (count(kind) > count(best) ? kind : best))
  }
  const translated = new Set(Object.keys(mapping.lookups ?? {}).map(comparableName))
  return {
    file: (header) =>
      mapColumns(optionsFor(kindOf(header), header)).targets.map(
        (target) => target && (translated.has(target.name) ? 'text' : useOf(target.meta)),
      ),
    lines: (header) => {
      const kind = kindOf([])
      return header.map((cell) => {
        const column = comparableName(cell)
        if (column === `${kind.one}_id`) return 'text'
        if (column === 'position') return 'number'
        const target = toTarget({ kind, name: `${kind.list}.${column}` })
        return target === undefined || target.readOnly ? undefined : useOf(target.meta)
      })
    },
    lookup: () => ['text', 'text'],
  } satisfies Record<string, Uses>
}

function useOf({ kind }: FieldMeta): ColumnUse {
  if (kind === 'text') return 'text'
  if (kind === 'integer' || kind === 'decimal') return 'number'
  return kind === 'date' ? 'date' : 'other'
}
