import { fieldsOf, type FieldMeta } from '../core/billing/resources/fields.ts'
import { transitions } from '../core/changes/transitions.ts'
import { outcomes } from '../core/changes/outcomes.ts'
import { type ImportKind, importKindNames, importKinds } from '../core/imports/kinds.ts'

/** Generated blocks of pages, by name. */
export const importBlocks: Readonly<Record<string, () => string>> = {
  moves: () =>
    groupedMoves()
      .map(([froms, effect]) => `- ${froms.join(', ')} → ${effect}`)
      .join('\n'),
  outcomes: () => groupedLines(Object.entries(outcomes)).join('\n'),
  fields: () => importKindNames.map((name) => section(importKinds[name])).join('\n\n'),
}

/** Transitions with the same effect share a line. */
function groupedMoves(): [froms: string[], effect: string][] {
  const effects = Map.groupBy(transitions, ({ to, by, rule }) => `${to} (${by}): ${rule}`)
  return Array.from(effects, ([effect, all]) => [all.map(({ from }) => from), effect])
}

function section(kind: ImportKind): string {
  const rows = fieldsOf(kind.schema).flatMap(([name, meta]) => toRows({ kind, name, meta }))
  return [`### ${kind.name}`, '', ...groupedLines(rows)].join('\n')
}

/** A list of names with their type and what applies to them; neighbours that are alike share a line. */
export function groupedLines(rows: readonly string[][]): string[] {
  const groups: { names: string[]; rest: string }[] = []
  for (const [name = '', ...words] of rows) {
    const rest = words.filter(Boolean).join('; ')
    const last = groups.at(-1)
    if (last?.rest === rest) last.names.push(`\`${name}\``)
    else groups.push({ names: [`\`${name}\``], rest })
  }
  return groups.map(({ names, rest }) => `- ${names.join(', ')}: ${rest}`)
}

function toRows({ kind, name, meta }: { kind: ImportKind; name: string; meta: FieldMeta }): string[][] {
  if (name === 'id' && kind.does !== 'create') return [['id', 'text', `required: the ${kind.one}'s id`]]
  if (meta.write === 'readOnly') return []
  if (meta.kind !== 'list') return [toRow({ kind, name, meta })]
  const places = fieldsOf(meta.fields)
    .filter(([, { write }]) => write !== 'readOnly')
    .map(([key, field]) => toRow({ kind, name: `${name}.1.${key}`, meta: field }))
  const rules = [...requiredRule(kind, meta), 'the list in one cell, or:']
  return [[name, 'JSON', rules.join('; ')], ...places]
}

/** What a field means is in docs/tables.md. */
function toRow({ kind, name, meta }: { kind: ImportKind; name: string; meta: FieldMeta }): string[] {
  const rules = [
    ...requiredRule(kind, meta),
    ...(meta.values === undefined ? [] : [meta.values.map((value) => `\`${value}\``).join(', ')]),
    ...(meta.maxLength === undefined ? [] : [`at most ${meta.maxLength} characters`]),
    ...(meta.min === undefined ? [] : [`at least ${meta.min}`]),
    ...(meta.nullable === true ? ['or `\\N`'] : []),
    ...(meta.default === undefined || kind.does !== 'create' ? [] : [`default \`${meta.default}\``]),
  ]
  const holds = meta.format === 'email' ? 'e-mail' : meta.kind
  return [name, holds, rules.join('; ')]
}

const requiredRule = (kind: ImportKind, { write }: FieldMeta): string[] =>
  kind.does === 'create' && write === 'required' ? ['required'] : []
