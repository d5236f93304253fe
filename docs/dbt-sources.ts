import { allResources, listResources } from '../core/billing/resources/lists.ts'
import {
  aboutTable,
  liveColumns,
  liveName,
  runColumns,
  toWarehouseTable,
} from '../core/destinations/layout.ts'
import { toTables } from '../core/tables/privacy.ts'

/** The columns of `_exports` that people query; its manifest has the rest. */
const exportColumns = {
  run: 'the run, as in _run_id',
  resource: Object.keys(allResources).join(', '),
  mode: 'full, incremental, or byId for documents that were fetched by id',
  verdict: 'proven or unproven',
  reasons: 'why it is not proven; JSON, one sentence each',
  scope: 'what the verdict covers, and what it does not; JSON, one sentence each',
  warnings: 'what a person should check (such as deletes held back); JSON, one sentence each',
  filters: 'the filters of the list; {} is the whole list',
  read_at: 'when the read began',
  complete_through: 'the proof covers what was created up to this moment',
  marks_deletes: 'whether it was a proven read of the whole list, whose deletes are marked',
  published_at: 'when it became visible here',
}

const freshness = (resource: string) => [
  '        config:',
  '          loaded_at_field: complete_through',
  '          freshness:',
  '            warn_after: { count: 26, period: hour }',
  '            error_after: { count: 50, period: hour }',
  `            filter: "verdict = 'proven' and cast(filters as text) = '{}' and resource = '${resource}'"`,
]

const toColumns = (columns: readonly { name: string; note: string }[]) => [
  '        columns:',
  ...columns.flatMap(({ name, note }) => [
    `          - name: ${name}`,
    `            description: ${JSON.stringify(note)}`,
  ]),
]

/** The sources of a dbt project (1.10 or newer) over a warehouse: every table, and how fresh each list is. */
export function dbtSources(): string {
  const resources = Object.values(listResources)
  const tables = Object.values(allResources).flatMap((resource) =>
    toTables(resource).flatMap((table) => [
      `      - name: ${table.name}`,
      `        description: ${JSON.stringify(aboutTable(table))}`,
      ...toColumns([...toWarehouseTable(table).columns, ...runColumns]),
      `      - name: ${liveName(table)}`,
      `        description: "${table.name} without the records that are gone"`,
      ...toColumns(liveColumns(table)),
    ]),
  )
  const notes = Object.entries(exportColumns).map(([name, note]) => ({ name, note }))
  const exports = resources.flatMap(({ name }) => [
    `      - name: exports_of_${name}`,
    '        identifier: _exports',
    `        description: "The exports of all lists; fresh if a proven one of ${name} is recent."`,
    ...freshness(name),
    ...toColumns(notes),
  ])
  return `${[
    '# Generated from the schemas in core/billing/resources/ by `npm run docs`. docs/exports.md says what the columns mean.',
    'version: 2',
    'sources:',
    '  - name: billing',
    '    # In DuckDB: main, and the database that it is attached as. For test data in PostgreSQL: billing_test.',
    `    database: "{{ var('billing_database', target.database) }}"`,
    `    schema: "{{ var('billing_schema', 'billing') }}"`,
    '    tables:',
    ...exports,
    ...tables,
  ].join('\n')}\n`
}
