import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { listNames } from '../../core/billing/resources/lists.ts'
import { destinationNames, type DestinationName } from '../../core/destinations/names.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import { openState } from '../../core/state/open.ts'
import type { StoredWatermark } from '../../core/state/watermarks.ts'
import { readStatePlace } from '../../worker/settings/settings.ts'
import { personHere } from '../runs/person.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples, byOption, choice } from './options.ts'

interface ResetOptions {
  to?: DestinationName
  why: string
  by?: string
}

/** Shows and resets the state that incremental exports rely on. */
export function configure(command: Command, terminal: Terminal): void {
  command
    .command('show', { isDefault: true })
    .description('list the watermarks: how far each incremental export has read')
    .action(async () => show(terminal))
  command
    .command('reset')
    .description('forget the watermark of a resource: its next incremental export reads the whole list')
    .argument('<resource>', listNames.join(', '))
    .option('--to <destination>', 'only of this destination', choice('destination', destinationNames))
    .requiredOption('--why <reason>', 'your reason; it is kept in exports/watermark-resets.jsonl')
    .addOption(byOption())
    .action(async (name: string, options: ResetOptions) => reset({ name, options, terminal }))
  addExamples(command, 'inspect', {
    state: 'how far each incremental export has read',
    'state reset customers --to duckdb --why "the warehouse was restored"':
      'the next incremental export reads the whole list',
  })
}

const statePlace = () => readStatePlace({ env: process.env, cwd: process.cwd() })

async function show(terminal: Terminal): Promise<void> {
  const state = await openState({ ...statePlace(), readOnly: true })
  try {
    const watermarks = (await state.watermarks.all()).map(toDocument)
    const rows = watermarks.map(({ resource, destination, filter, readUpTo, run }) => [
      resource,
      ...placesOf(destination),
      filter,
      formatLocalTime(readUpTo),
      run,
    ])
    const head = ['resource', 'destination', 'service', 'only', 'read up to', 'run']
    const none = 'No watermarks: every incremental export reads the whole list.'
    terminal.result({
      document: { watermarks },
      text: rows.length === 0 ? none : formatTable({ head, rows }),
    })
  } finally {
    await state.close()
  }
}

/** `duckdb live from https://...` names the destination and the service that it was read from. */
function placesOf(destination: string): [string, string] {
  const [name = '', service = ''] = destination.split(' from ')
  return [name, service]
}

const toDocument = ({ at, ...watermark }: StoredWatermark) => ({
  ...watermark,
  readUpTo: new Date(at).toISOString(),
})

async function reset(call: { name: string; options: ResetOptions; terminal: Terminal }): Promise<void> {
  const { options, terminal } = call
  const { to, why, by = personHere() } = options
  const resource = choice('resource', listNames)(call.name)
  const place = statePlace()
  const { folder } = place
  // Prevents a worker from advancing a watermark in the meantime.
  const lock = acquireLock({ folder, role: 'state reset' })
  const state = await openState({ ...place, isHeld: () => lock.isHeld() })
  try {
    const found = (await state.watermarks.all()).filter(
      (one) => one.resource === resource && (to === undefined || one.destination.split(' ')[0] === to),
    )
    const where = to === undefined ? '' : ` to ${to}`
    if (found.length === 0)
      throw new RefusedError(`There is no watermark of ${resource}${where}.`, {
        hint: '`connector state` lists them.',
      })
    const watermarks = found.map(toDocument)
    const entry = { at: new Date().toISOString(), by, why, watermarks }
    await appendFile(join(folder, 'exports', 'watermark-resets.jsonl'), `${JSON.stringify(entry)}\n`)
    for (const one of found) await state.watermarks.remove(one)
    terminal.result({
      document: { reset: watermarks, by, why },
      text: `Reset ${found.length} of ${resource}${where}; the next incremental export reads the whole list.`,
    })
  } finally {
    await state.close()
    lock.release()
  }
}
