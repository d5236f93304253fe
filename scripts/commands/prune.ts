import type { Command } from 'commander'
import { z } from 'zod'
import { findOldExports, removeOldExport } from '../../core/exports/prune.ts'
import type { State } from '../../core/state/open.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { openFiles } from '../../worker/files.ts'
import { askState, sharedFolder } from '../runs/run-files.ts'
import { confirm, type Terminal } from '../terminal/terminal.ts'
import { addExamples, addInputOptions, ageInput, processPlaces, toAge } from './options.ts'

const pruneInput = z.object({
  olderThan: ageInput.meta({
    flag: '--older-than <time>',
    help: 'only exports that are at least this old, as in 30d',
  }),
})

type Options = z.output<typeof pruneInput> & { dryRun?: boolean; yes?: boolean }

export function configure(command: Command, terminal: Terminal): void {
  addInputOptions(command, pruneInput)
    .option('--dry-run', 'list what would be removed; remove nothing')
    .option('--yes', 'do not ask on a terminal')
    .action(async ({ olderThan, dryRun = false, yes = false }: Options) => {
      const places = processPlaces()
      const where = { dataDir: places.dataDir, files: openFiles(places), shared: sharedFolder(places) }
      const before = Date.now() - (toAge(olderThan) ?? 0)
      const find = (state: State) => findOldExports({ ...where, state, before })
      const old = (await askState(places.state, find)) ?? []
      if (!dryRun && old.length > 0) {
        await confirm({
          terminal,
          yes,
          text: toTable(old),
          question: 'Remove these?',
          what: 'Removing',
          declined: 'Nothing was removed.',
          hint: 'Add --yes, or --dry-run.',
        })
        for (const one of old) await removeOldExport({ ...where, old: one })
      }
      const megabytes = (old.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6).toFixed(1)
      const counts = `${old.length} ${old.length === 1 ? 'export' : 'exports'}, ${megabytes} MB.`
      const summary = `${dryRun ? 'Would remove' : 'Removed'} ${counts}`
      const text = old.length === 0 ? 'Nothing to remove.' : `${toTable(old)}\n${summary}`
      terminal.result({ document: { dryRun, [dryRun ? 'old' : 'removed']: old }, text })
    })
  addExamples(command, 'inspect', {
    'prune --older-than 30d --dry-run': 'list what is older and what nothing needs',
    'prune --older-than 30d --yes': 'remove them, in cron',
  })
}

const toTable = (all: Awaited<ReturnType<typeof findOldExports>>): string =>
  formatTable({
    head: ['resource', 'started', 'MB', 'folder'],
    rows: all.map(({ resource, startedAt, bytes, folder }) => [
      resource,
      formatLocalTime(startedAt, 'minutes'),
      (bytes / 1e6).toFixed(1),
      folder,
    ]),
  })
