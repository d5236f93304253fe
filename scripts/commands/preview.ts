import type { Command } from 'commander'
import type { Returned } from '../../core/billing/client.ts'
import { listNames, listResources } from '../../core/billing/resources/lists.ts'
import { isRawNumber } from '../../core/billing/lossless-json.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import { createCommandService } from '../../worker/service.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { checkListFilters } from './check-reading.ts'
import { addExamples, choice, toCount, toFilter, toList } from './options.ts'

/** The most records that the service returns at once. */
const maxRecords = 100
/** The number of columns that fits in a terminal. */
const defaultColumns = 6
const longestCell = 40

interface Options {
  limit: number
  filter?: Record<string, string>
  columns?: string[]
}

/** Prints the newest records of a list: one request, no files, no Temporal. */
export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<resource>', listNames.join(', '))
    .option('--limit <n>', `how many records, up to ${maxRecords}`, toCount, 10)
    .option('--filter <name=value>', 'filter of the list, as in status=active; repeatable', toFilter)
    .option(
      '--columns <fields>',
      `fields to print, separated by commas (default: the first ${defaultColumns})`,
      toList,
    )
    .action(async (name: string, { limit, filter: filters = {}, columns }: Options) => {
      if (limit > maxRecords)
        throw new UsageError(`--limit is at most ${maxRecords}; export the list for more.`)
      const resource = listResources[choice('resource', listNames)(name)]
      checkListFilters({ resource, filters })
      const settings = processSettings()
      terminal.identity(settings.billing)
      const query = { resource, page: 1, pageSize: limit, ordering: '-created', filters, tries: 3 }
      const records = (await createCommandService(settings).list(query)).records as Returned[]
      const fields = columns ?? scalarFields(records).slice(0, defaultColumns)
      const rows = records.map((record) => fields.map((field) => toCell(record[field])))
      const text = rows.length === 0 ? 'No records.' : formatTable({ head: fields, rows })
      terminal.result({ document: { resource: resource.name, records }, text })
    })
  addExamples(command, 'inspect', {
    'preview plans': 'the newest ten',
    'preview subscriptions --filter status=needs_attention --limit 20': 'some of what needs attention',
    'preview customers --columns id,name,email --json': 'whole records, for programs',
  })
}

/** The fields with scalar values, in the service's order; lists and objects are omitted. */
const scalarFields = (records: readonly Returned[]): string[] =>
  [...new Set(records.flatMap(Object.keys))].filter((field) =>
    records.every((record) => isScalar(record[field])),
  )

const isScalar = (value: unknown): boolean =>
  value === null || typeof value !== 'object' || isRawNumber(value)

function toCell(value: unknown): string {
  if (value === undefined || value === null) return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > longestCell ? `${text.slice(0, longestCell - 3)}...` : text
}
