import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { allResources } from '../core/billing/resources/all-resources.ts'
import { describeTables } from '../core/tables/describe-tables.ts'
import { describeSettings } from '../worker/settings/docs.ts'
import { dbtSources } from './dbt-sources.ts'
import { importBlocks } from './import-pages.ts'
import { roomTable } from './room-table.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** The pages that say what the code says. */
export function generatedPages(): { path: string; text: string }[] {
  return [
    { path: here('tables.md'), text: tablesPage() },
    { path: here('configuration.md'), text: describeSettings() },
    { path: here('dbt/sources.yml'), text: dbtSources() },
    filledPage(here('guarantees.md')),
    filledPage(here('imports.md')),
    filledPage(here('architecture.md')),
  ]
}

const blocks: Readonly<Record<string, () => string>> = { ...importBlocks, rooms: roomTable }

/** A page that people write, of which the blocks between `<!-- name -->` and `<!-- /name -->` come from the code. */
function filledPage(path: string): { path: string; text: string } {
  const text = readFileSync(path, 'utf8').replaceAll(
    /<!-- (\w+) -->\n.*?<!-- \/\1 -->/gs,
    (_, name: string) => `<!-- ${name} -->\n\n${blocks[name]?.().trim()}\n\n<!-- /${name} -->`,
  )
  return { path, text }
}

function tablesPage(): string {
  const lines = describeTables(Object.values(allResources))
  const names = [...new Set(lines.map(({ table }) => table))]
  const sections = names.map((name) => {
    const rows = lines
      .filter(({ table }) => table === name)
      .map(({ column, type, comesFrom, note }) => `| \`${column}\` | ${type} | \`${comesFrom}\` | ${note} |`)
    return [`## ${name}`, '', '| column | type | comes from | |', '|---|---|---|---|', ...rows].join('\n')
  })
  return `# Tables

Made from the schemas of \`core/billing/resources/\` by \`npm run docs\`. CSV headers are these column names; values are as
the service wrote them: timestamps with their offset, booleans as \`true\` and \`false\`, every digit of a number.
\`_extra\` holds as JSON what no column knows or could take; the manifest counts such values under \`drift\`. Child tables
carry the id of the record they belong to and their \`position\` in it, from 1.

In CSV, NULL is an empty field and the empty text is \`""\`. To keep the two apart when reading:

| reader | how |
|---|---|
| DuckDB | \`read_csv('customers.csv', allow_quoted_nulls = false, max_line_size = 20000000)\` |
| PostgreSQL | \`copy customers from '/path/customers.csv' (format csv, header true)\` |
| pandas | \`pd.read_csv('customers.csv', dtype=str, keep_default_na=False)\` reads both as empty texts; use DuckDB where the difference matters |
| Excel | export with \`--for excel\`: BOM, \`;\`, decimal comma, and a guard against cells that would run as a formula; it lies in a folder \`…-excel\`, and \`latest\` stays with the exports for programs |

${sections.join('\n\n')}
`
}
