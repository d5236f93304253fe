import { Option, type Command } from 'commander'
import type { ExportInput } from '../../core/exports/input.ts'
import { listResources, listNames, type ListName } from '../../core/billing/resources/lists.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { processSettings } from '../session/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addReadOptions,
  checkListFilters,
  choice,
  toCount,
  toFilter,
  toMaxDeletes,
  toParallel,
  toReadFields,
  toServer,
  type ReadOptions,
} from './options.ts'

interface Options extends ReadOptions {
  filter?: Record<string, string>
  maxPages?: number
  parallel?: number
  mode?: 'full' | 'incremental'
  maxDeletes?: number | 'all'
}

export function configure(command: Command, terminal: Terminal): void {
  const modeOption = new Option(
    '--mode <mode>',
    'the whole list, or what changed since the last proven export',
  )
  command
    .argument('[resources...]', `${listNames.join(', ')} (default: all)`)
    .addOption(modeOption.choices(['full', 'incremental']))
    .option('--filter <name=value>', 'filter of the list, as in status=active; repeatable', toFilter)
    .option('--max-pages <n>', 'maximum requests of each read; a read cut short is unproven', toCount)
    .option(
      '--parallel <n>',
      'ranges of a long list to read at once (default: BILLING_CONCURRENCY; 1 divides no list)',
      toParallel,
    )
    .option(
      '--max-deletes <n>',
      'maximum number of records to mark as deleted in a warehouse, or all (default: a tenth)',
      toMaxDeletes,
    )
  addReadOptions(command).action((names: string[], options: Options) => act({ names, options, terminal }))
  addExamples(command, 'run', {
    'export --local': 'all lists to CSV, with a Temporal server of its own',
    'export customers --to duckdb,parquet': 'one list to two destinations',
    'export subscriptions --to postgres --mode incremental': 'what changed since the last proven export',
  })
}

async function act(call: { names: string[]; options: Options; terminal: Terminal }): Promise<void> {
  const { options, terminal } = call
  const server = toServer(options)
  const input = toInput(call)
  const settings = processSettings()
  await checkInput({ input, settings, local: server.local })
  // Loaded late: Temporal's client and worker take a second to load, and usage errors are reported first.
  const { runExport } = await import('../runs/run-export.ts')
  await runExport({ settings, terminal, input, ...server })
}

function toInput({ names, options }: { names: string[]; options: Options }): ExportInput {
  const { filter, maxPages, parallel, mode, maxDeletes } = options
  const resources: ListName[] = names.map(choice('resource', listNames))
  return {
    ...toReadFields(options),
    ...(resources.length > 0 && { resources }),
    ...(filter !== undefined && { filters: filter }),
    ...(mode !== undefined && { mode }),
    ...(maxDeletes !== undefined && { maxDeletes }),
    ...(maxPages !== undefined && { maxPages }),
    ...(parallel !== undefined && { parallel }),
  }
}

/** Reports, before any server is started, errors that would fail the run immediately. */
async function checkInput(of: { input: ExportInput; settings: Settings; local: boolean }): Promise<void> {
  const { settings, local } = of
  const { resources = listNames, filters = {}, exclude = [], hash = [], out } = of.input
  for (const name of resources) checkListFilters({ resource: listResources[name], filters })
  // Loaded late: most exports name neither columns nor a folder. Another worker has its own key and folders, and checks
  // both itself.
  if (exclude.length > 0 || hash.length > 0) {
    const { checkPrivacy } = await import('../../core/tables/privacy.ts')
    const hashKey = local ? (settings.hashKey ?? '') : 'of the worker'
    checkPrivacy(Object.values(listResources), { exclude, hash, hashKey })
  }
  if (local && out !== undefined) {
    const { allowedRoot } = await import('../../core/destinations/allowed-root.ts')
    await allowedRoot({ ...settings, out })
  }
}
