import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { allResources } from '../core/billing/resources/lists.ts'
import { importInput } from '../core/imports/input.ts'
import { exportInput } from '../core/exports/input.ts'
import { recoveryInput } from '../core/recoveries/input.ts'
import { reasons } from '../core/recoveries/reasons.ts'
import { describeFields } from '../core/runs/inputs.ts'
import { toTables } from '../core/tables/privacy.ts'
import type { Commands } from '../scripts/command-line.ts'
import { commands } from '../scripts/commands/commands.ts'
import { describeSettings } from '../worker/settings/variables.ts'
import { scheduleSchema } from '../scripts/schedules/file.ts'
import { schemaFiles } from './schemas.ts'
import { dbtSources } from './dbt-sources.ts'
import { groupedLines, importBlocks } from './import-pages.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))

/** The pages that are generated from the code, whole or in part. */
export function generatedPages(): { path: string; text: string }[] {
  return [
    { path: here('tables.md'), text: tablesPage() },
    { path: here('configuration.md'), text: describeSettings() },
    { path: here('dbt/sources.yml'), text: dbtSources() },
    filledPage(here('guarantees.md')),
    filledPage(here('commands.md')),
    filledPage(here('imports.md')),
    filledPage(here('recovery.md')),
    filledPage(here('schedules.md')),
    ...schemaFiles(),
  ]
}

const blocks: Readonly<Record<string, () => string>> = {
  ...importBlocks,
  commands: () => commandList(commands),
  exportFields: () => describeFields(exportInput),
  importFields: () => describeFields(fieldsWhere(importInput, (name) => !isShared(name))),
  recoveryFields: () => describeFields(fieldsWhere(recoveryInput, (name) => !isShared(name))),
  scheduleFields: () => describeFields(scheduleSchema),
  sharedFields: () => describeFields(fieldsWhere(importInput, isShared)),
  reasons: () =>
    Object.entries(reasons)
      .map(
        ([name, { does, because }]) =>
          `- \`${name}\` is ${does === 'try' ? 'resumed' : 'reported'}: ${because}`,
      )
      .join('\n'),
}

type Shape = Readonly<Record<string, z.ZodType>>

/** Whether a field has the same schema in an import and in a recovery: it is described once, for both. */
const isShared = (name: string) => (importInput.shape as Shape)[name] === (recoveryInput.shape as Shape)[name]

const fieldsWhere = ({ shape }: { shape: Shape }, keep: (name: string) => boolean) =>
  z.object(Object.fromEntries(Object.entries(shape).filter(([name]) => keep(name))))

/** A page that people write, with generated blocks between `<!-- name -->` and `<!-- /name -->`. */
function filledPage(path: string): { path: string; text: string } {
  const text = readFileSync(path, 'utf8').replaceAll(
    /<!-- (\w+) -->\n.*?<!-- \/\1 -->/gs,
    (_, name: string) => `<!-- ${name} -->\n\n${blocks[name]?.().trim()}\n\n<!-- /${name} -->`,
  )
  return { path, text }
}

function tablesPage(): string {
  const tables = Object.values(allResources).flatMap((resource) => toTables(resource))
  const sections = tables.map(({ name, columns }) => {
    const rows = columns
      .filter(({ name }) => name !== '_extra' && name !== 'position')
      .map(({ name, kind, note = '' }) => [name, kind, note])
    return [`## ${name}`, '', ...groupedLines(rows)].join('\n')
  })
  return `# Tables

CSV headers are these column names, in this order: the path of the field in its record, joined by \`_\` (\`country_id\` is \`country.id\`). Values are as the service wrote them: timestamps with their offset, booleans as \`true\` and \`false\`, every digit of a number. After the id of its parent, a child table has \`position\`, the place in the parent's list from 1. Each table ends with \`_extra\`: as JSON, fields without a column, and values that did not fit their column.

In CSV, NULL is an empty field and the empty text is \`""\`. To keep the two apart when reading:

- DuckDB: \`read_csv('customers.csv', allow_quoted_nulls = false, max_line_size = 20000000)\`
- PostgreSQL: \`copy customers from '/path/customers.csv' (format csv, header true)\`
- pandas: \`pd.read_csv('customers.csv', dtype=str, keep_default_na=False)\` reads both as empty text; use DuckDB if the difference matters
- Excel: export with \`--for-excel\`: BOM, \`;\`, decimal comma, texts that look like numbers or dates (\`01000\`, \`3-4\`) as \`="01000"\`, and a guard against cells that would run as formulas

${sections.join('\n\n')}
`
}

function commandList(all: Commands, group = ''): string {
  return Object.entries(all)
    .map(([name, one]) =>
      'commands' in one ? commandList(one.commands, `${name} `) : `- \`${group}${name}\`: ${one.summary}`,
    )
    .join('\n')
}
