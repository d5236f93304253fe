import { Option, type Command } from 'commander'
import type { ExportInput } from '../../core/exports/input.ts'
import { checkFilters } from '../../core/billing/resources/filters.ts'
import { listResources, listNames, type ListName } from '../../core/billing/resources/lists.ts'
import { allowedRoot } from '../../core/destinations/allowed-root.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { addReadOptions, toMaxDeletes, toReadFields, type ReadOptions } from '../runs/publish-options.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options extends ReadOptions {
  filter: Record<string, string>
  maxPages?: number
  mode?: 'full' | 'incremental'
  maxDeletes?: number | 'all'
}

export function configure(command: Command, terminal: Terminal): void {
  command.argument('[resources...]', `${listNames.join(', ')}; all of them where none is named`)
  addReadOptions(command)
    .addOption(
      new Option(
        '--mode <mode>',
        'the whole list (default), or what changed since the last proven export',
      ).choices(['full', 'incremental']),
    )
    .option('--filter <name=value>', 'a filter of the list; may be given again', toFilter, {})
    .option('--max-pages <n>', 'the most requests each read may make; cut short, it is not proven', toCount)
    .option(
      '--max-deletes <n>',
      'how many records a warehouse may mark as deleted (default: a tenth), or all',
      toMaxDeletes,
    )
    .action((names: string[], options: Options) => act({ names, options, terminal }))
}

async function act(call: { names: string[]; options: Options; terminal: Terminal }): Promise<void> {
  const { options, terminal } = call
  const { local = false, detach = false } = options
  const input = toInput(call)
  const settings = processSettings()
  await checkInput({ input, settings, local })
  // Temporal's client and worker take a second to load: wrong usage is told before.
  const { runExport } = await import('../runs/run-export.ts')
  await runExport({ settings, terminal, input, local, detach })
}

function toInput({ names, options }: { names: string[]; options: Options }): ExportInput {
  const { filter, maxPages, mode, maxDeletes } = options
  const resources = names.map(toResource)
  return {
    ...toReadFields(options),
    ...(resources.length > 0 && { resources }),
    ...(Object.keys(filter).length > 0 && { filters: filter }),
    ...(mode !== undefined && { mode }),
    ...(maxDeletes !== undefined && { maxDeletes }),
    ...(maxPages !== undefined && { maxPages }),
  }
}

/** What would make the run fail at once is said before any server is started. */
async function checkInput(of: { input: ExportInput; settings: Settings; local: boolean }): Promise<void> {
  const { settings, local } = of
  const { resources = listNames, filters = {}, exclude = [], hash = [], out } = of.input
  for (const name of resources) checkFilters({ resource: listResources[name], filters })
  // Another worker has a key and folders of its own, and checks both itself.
  const hashKey = local ? (settings.hashKey ?? '') : 'of the worker'
  checkPrivacy(Object.values(listResources), { exclude, hash, hashKey })
  if (local && out !== undefined) await allowedRoot({ ...settings, out })
}

function toResource(name: string): ListName {
  const known = listNames.find((one) => one === name)
  if (known === undefined)
    throw new UsageError(`There is no resource ${name}; choose from ${listNames.join(', ')}.`)
  return known
}

function toFilter(text: string, filters: Record<string, string>): Record<string, string> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
  if (name === undefined || value === undefined) throw new UsageError(`--filter ${text} is not name=value.`)
  return { ...filters, [name]: value }
}

function toCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--max-pages ${text} is not a whole number from 1.`)
  return Number(text)
}
