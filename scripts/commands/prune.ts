import { InvalidArgumentError, type Command } from 'commander'
import { findOldExports, removeOldExport } from '../../core/exports/prune-exports.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { openFiles, openPublications } from '../../worker/files.ts'
import { readPlaces, readStatePlace } from '../../worker/settings/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import { isYes, type Terminal } from '../terminal/terminal.ts'
import { findUnusedUploads, type UnusedUpload } from '../runs/unused-uploads.ts'
import { addExamples } from './options.ts'

const dayMs = 86_400_000

interface Options {
  keepDays: number
  dryRun?: boolean
  yes?: boolean
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .requiredOption('--keep-days <n>', 'keep exports of the last n days', toDays)
    .option('--dry-run', 'list what would be removed; remove nothing')
    .option('--yes', 'remove without asking')
    .action(async ({ keepDays, dryRun = false, yes = false }: Options) => {
      const source = { env: process.env, cwd: process.cwd() }
      const places = readPlaces(source)
      const files = openFiles(places)
      const state = readStatePlace(source)
      await using publications = await openPublications(state, files)
      const where = { dataDir: places.dataDir, files, publications }
      const before = Date.now() - keepDays * dayMs
      const old = await findOldExports({ ...where, before })
      const unused = await findUnusedUploads({
        places: { ...places, state },
        before,
        onUnknown: (count, error) => terminal.note(toUnknown(count, error)),
      })
      const uploads = unused.map(toRow)
      const all = [...old, ...uploads]
      if (!dryRun && all.length > 0) {
        if (!yes) await confirm({ terminal, text: toTable(all) })
        for (const one of old) await removeOldExport({ ...where, old: one })
        for (const upload of unused) await upload.remove()
      }
      const megabytes = (all.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6).toFixed(1)
      const counts = `${count(old.length, 'export')} and ${count(uploads.length, 'upload')}, ${megabytes} MB.`
      const summary = `${dryRun ? 'Would remove' : 'Removed'} ${counts}`
      const text = all.length === 0 ? 'Nothing to remove.' : `${toTable(all)}\n${summary}`
      terminal.result({ document: { dryRun, removed: old, uploads }, text })
    })
  addExamples(command, 'inspect', {
    'prune --keep-days 30 --dry-run': 'list what is older and what nothing needs',
    'prune --keep-days 30 --yes': 'remove them, in cron',
  })
}

async function confirm({ terminal, text }: { terminal: Terminal; text: string }): Promise<void> {
  terminal.note(text)
  if (!terminal.isInteractive)
    throw new RefusedError('Removing needs a confirmation, and this is not a terminal.', {
      hint: 'Nothing was removed. Add --yes, or --dry-run.',
    })
  if (!isYes(await terminal.ask('Remove these? [y/N] '))) throw new RefusedError('Nothing was removed.')
}

const toRow = ({ where, at, files }: UnusedUpload) => ({
  resource: 'upload',
  folder: where,
  startedAt: new Date(at).toISOString(),
  bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
})

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`

const toUnknown = (number: number, error: unknown) =>
  `Not removed: ${count(number, 'upload')} of imports. Only Temporal knows which of them a run still needs. ` +
  (error instanceof Error ? error.message : String(error))

const toTable = (all: readonly ReturnType<typeof toRow>[]): string =>
  formatTable({
    head: ['resource', 'started', 'MB', 'folder'],
    rows: all.map(({ resource, startedAt, bytes, folder }) => [
      resource,
      formatLocalTime(startedAt, 'minutes'),
      (bytes / 1e6).toFixed(1),
      folder,
    ]),
  })

function toDays(text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Write a whole number of days from 1.')
}
