import type { Command } from 'commander'
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { Changes } from '../../core/destinations/files/compare.ts'
import { verifyExport } from '../../core/destinations/files/verify.ts'
import { type Manifest, readManifest } from '../../core/destinations/manifest.ts'
import { isFileDestination } from '../../core/destinations/names.ts'
import { formatCount, formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { isAddress } from '../../core/state/publications.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import { isAmount } from '../../core/tables/decimal-sum.ts'
import { askState, newestRun } from '../runs/run-files.ts'
import { exitCodes, RefusedError, UsageError } from '../terminal/failures.ts'
import { onInterrupt, type Terminal } from '../terminal/terminal.ts'
import { addExamples, callersPath, choice, exportFolder, processPlaces } from './options.ts'

interface Options {
  list?: string
  out?: string
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<older>', 'folder of an export, or a run')
    .argument('<newer>', 'the same of a later one')
    .option('--list <name>', 'the list to compare, if the runs have several')
    .option(
      '--out <file>',
      'where to write what changed; never over another file (default: named by the list and both runs)',
    )
    .action(async (older: string, newer: string, options: Options) => {
      const found = [await findExports(older, terminal), await findExports(newer, terminal)] as const
      const list = chooseList(found, options.list)
      const sides = await Promise.all(
        found.map((folders) => open(folders.get(list) ?? [...folders.values()][0]!)),
      )
      const [before, after] = sides as [Side, Side]
      const name = toFileName(['changes', list, before.manifest.run, after.manifest.run].join('-'))
      const out = callersPath(options.out ?? `${name}.csv`)
      const stopped = new AbortController()
      using _interrupt = onInterrupt({
        first: () => stopped.abort(new Error('Stopped; nothing was written.')),
        second: () => process.exit(1),
      })
      const { compareExports } = await import('../../core/destinations/files/compare.ts')
      const changes = await compareExports({ older: before, newer: after, out, signal: stopped.signal })
      terminal.result({
        document: {
          list,
          older: describe(before),
          newer: describe(after),
          ...changes,
          changes: out,
        },
        text: toText({ list, before, after, changes, out }),
      })
      if (changes.verdict === 'unproven') process.exitCode = exitCodes.unproven
    })
  addExamples(command, 'run', {
    'compare data/exports/plans/<start>-<run> data/exports/plans/latest':
      'what changed since then, and its sums',
    'compare export-all-1f0c2b7a90.1 export-all-1f0c2b7a90.2 --list plans': 'between two runs',
  })
}

interface Side {
  folder: string
  manifest: Manifest
}

/** The folders of an export, or of all exports of a run, by list. */
async function findExports(name: string, terminal: Terminal): Promise<Map<string, string>> {
  if (isAddress(name)) throw inBucket(name)
  const path = await exportFolder(name)
  const manifest = await readManifest(path)
  if (manifest !== undefined) return new Map([[manifest.resource, path]])
  if (existsSync(path))
    throw new RefusedError(
      `${path} has no manifest.json: it is not the folder of an export, as .../latest is.`,
    )
  const places = processPlaces()
  const run = await newestRun({ places, run: name, terminal })
  const published = await askState(places.state, (state) => state.publications.all({ run }))
  const folders = new Map<string, string>()
  // CSV has every digit.
  for (const { resource, destination, manifest } of published ?? [])
    if (
      isFileDestination(destination) &&
      manifest !== undefined &&
      (destination === 'csv' || !folders.has(resource))
    )
      folders.set(resource, isAddress(manifest) ? manifest : dirname(resolve(manifest)))
  if (folders.size === 0)
    throw new RefusedError(`There is no export ${name}: neither a folder nor a run with files.`)
  return folders
}

const inBucket = (address: string) =>
  new RefusedError(
    `${address} is in a bucket, and compare needs files in a folder; copy the export into one first.`,
  )

function chooseList(found: readonly ReadonlyMap<string, string>[], list: string | undefined): string {
  const [older, newer] = found.map((folders) => [...folders.keys()]) as [string[], string[]]
  const common = older.filter((name) => newer.includes(name))
  if (list !== undefined) return choice('list in both exports', common)(list)
  // Of exports of two lists, the comparison says why it is refused.
  if (common.length === 1 || (older.length === 1 && newer.length === 1)) return common[0] ?? older[0]!
  throw new UsageError(`Name the list: --list ${(common.length > 0 ? common : older).join(' or ')}.`)
}

async function open(folder: string): Promise<Side> {
  if (isAddress(folder)) throw inBucket(folder)
  const { manifest, problems } = await verifyExport(folder)
  if (manifest === undefined || problems.length > 0)
    throw new RefusedError(
      `${folder} is not as it was published: ${problems.join(' ')} Nothing was compared.`,
    )
  return { folder, manifest }
}

const describe = ({ folder, manifest }: Side) => {
  const { run, verdict, startedAt, completeThrough } = manifest
  return { folder, run, verdict, startedAt, completeThrough }
}

function toText(of: { list: string; before: Side; after: Side; changes: Changes; out: string }): string {
  const { list, before, after, changes, out } = of
  const { records, sums, apart, reasons } = changes
  const name = ({ manifest: { run, verdict, startedAt } }: Side) =>
    `${run} (${formatLocalTime(startedAt, 'minutes')}, ${verdict})`
  const { opening, closing, changed, unchanged } = records
  const shown = sums.filter(
    ({ column, currency: _currency, ...amounts }) =>
      isAmount(column) && Object.values(amounts).some((sum) => /[1-9]/.test(sum)),
  )
  const hasCurrency = shown.some(({ currency }) => currency !== null)
  return [
    `Changes of ${list} from ${name(before)} to ${name(after)}:`,
    formatTable({
      head: ['records', '+ new', '- gone', '= records', 'changed', 'unchanged'],
      rows: [[opening, records.new, records.gone, closing, changed, unchanged]],
    }),
    ...(shown.length === 0
      ? []
      : [
          formatTable({
            head: [
              'sum of',
              ...(hasCurrency ? ['currency'] : []),
              'opening',
              '+ new',
              '- gone',
              '+ changed',
              '= closing',
            ],
            rows: shown.map((sum) => [
              sum.column,
              ...(hasCurrency ? [sum.currency || 'none'] : []),
              sum.opening,
              sum.new,
              sum.gone,
              sum.changed,
              sum.closing,
            ]),
          }),
        ]),
    [
      ...(apart.length === 0
        ? []
        : [`Not compared: ${apart.map(({ name, why }) => `${name} (${why})`).join(', ')}.`]),
      ...reasons,
      reasons.length === 0
        ? 'Both exports are proven and of the whole list: what is gone is gone, and what is new is new.'
        : 'So this is unproven.',
      `${out} has the values before and after of ${formatCount(records.new + records.gone + changed)} records that are new, gone or changed.`,
    ].join('\n'),
  ].join('\n\n')
}
