import type { FieldMeta } from '../billing/resources/fields.ts'
import { comparableName } from './cells/invisible.ts'
import { type ImportKind, type ImportKindName, importKinds } from './kinds.ts'
import { countMapped, mapColumns } from './mapping/column-mapping.ts'
import type { Mapping } from './mapping/mapping.ts'
import type { ColumnUse } from './workbook/render.ts'

export interface UsesOptions {
  /** Default: the kind that has most of the file's columns. */
  kind?: ImportKindName | undefined
  mapping: Mapping
  columns?: readonly string[] | undefined
}

type Uses = (header: readonly string[]) => (ColumnUse | undefined)[]

/** What the columns of an import's files hold: the cells of a workbook are read accordingly. */
export function createColumnUses({ kind: name, mapping, columns }: UsesOptions) {
  const optionsFor = (kind: ImportKind, header: readonly string[]) => ({
    kind,
    header,
    mapping,
    columns,
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
    lookup: () => ['text', 'text'],
  } satisfies Record<string, Uses>
}

function useOf({ kind }: FieldMeta): ColumnUse {
  if (kind === 'text') return 'text'
  if (kind === 'integer' || kind === 'decimal') return 'number'
  return kind === 'date' ? 'date' : 'other'
}
