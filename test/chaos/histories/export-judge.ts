import { existsSync, globSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { type Manifest, manifestName } from '../../../core/destinations/manifest.ts'
import { type ExportReport, isPublished } from '../../../core/exports/report.ts'
import type { ListName } from '../../../sandbox/options.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import type { Tally } from '../tally.ts'
import { folderPattern } from './folders.ts'

type Cells = Record<string, string>
type Fields = Record<string, unknown>

/** Holds all that is published against the service's own records, as a reader does who follows the proven exports. */
export class ExportJudge {
  readonly #sandbox: Sandbox
  readonly #tally: Tally
  readonly #seen = new Set<string>()
  readonly #looked = new Set<string>()
  /** Each list as that reader has it: full exports replaced, incremental ones merged. */
  readonly #merged = new Map<string, Map<string, Cells>>()

  constructor({ sandbox, tally }: { sandbox: Sandbox; tally: Tally }) {
    this.#sandbox = sandbox
    this.#tally = tally
  }

  /** Looks at what was published since the last look, whether a report came to tell of it or not. */
  async judge({
    dataDir,
    report,
    isRestored,
  }: {
    dataDir: string
    report: ExportReport | undefined
    /** Whether published files were restored: one that a report tells of may be gone. */
    isRestored: boolean
  }): Promise<string[]> {
    const findings: string[] = []
    // Without the watermarks: the reader starts over with a full export.
    if (isRestored) this.#merged.clear()
    const published = await this.#publishedIn(join(dataDir, 'exports'))
    for (const { path, manifest } of published) {
      this.#tally.add(`published ${manifest.mode} ${manifest.verdict}`)
      const found = (words: string) => findings.push(`${manifest.resource} ${manifest.mode}: ${words}`)
      const text = await readFile(join(dirname(path), `${manifest.resource}.csv`), 'utf8')
      const rows = parse<Cells>(text, { columns: true })
      for (const [id, same] of Map.groupBy(rows, (row) => row['id']))
        if (same.length > 1) found(`${manifest.verdict}, and ${id} is there ${same.length} times`)
      if (manifest.verdict === 'unproven') {
        if (manifest.completeThrough !== null) found('unproven, with a completeThrough')
        if (manifest.reasons.length === 0) found('unproven, without a reason')
        continue
      }
      if (manifest.reasons.length > 0) found(`proven, with reasons: ${manifest.reasons.join(' ')}`)
      if (manifest.mode === 'full') await judgePointer({ path, found })
      judgeProven({ manifest, rows, sandbox: this.#sandbox, merged: this.#merge(manifest, rows), found })
    }
    for (const { manifest: noted, verdict } of report?.exports.filter(isPublished) ?? []) {
      // On a real machine, the worker that takes over has the path of before, which the run's notes have, too.
      const path = noted?.replace(folderPattern, dataDir) ?? null
      if (path === null || (isRestored && !existsSync(path))) continue
      if (!this.#looked.has(path)) findings.push(`${path} is reported, and nobody looked at it`)
      const shown = JSON.parse(await readFile(path, 'utf8')) as Manifest
      if (shown.verdict !== verdict) findings.push(`the report says ${verdict}, and ${path} ${shown.verdict}`)
    }
    return findings
  }

  async #publishedIn(folder: string) {
    const paths = globSync(join(folder, '*', '*', manifestName)).filter(
      (path) => !basename(dirname(path)).startsWith('latest'),
    )
    for (const path of paths) this.#looked.add(path)
    const all = paths.map((path) => ({ path, manifest: JSON.parse(readFileSync(path, 'utf8')) as Manifest }))
    const fresh = all.filter(({ manifest: { resource, run, mode, publishedAt } }) => {
      const name = [resource, run, mode, publishedAt].join(' ')
      return this.#seen.size !== this.#seen.add(name).size
    })
    return fresh.toSorted((one, other) => (one.manifest.publishedAt < other.manifest.publishedAt ? -1 : 1))
  }

  /** Undefined where an incremental export has nothing to be merged with. */
  #merge({ resource, mode }: Manifest, rows: readonly Cells[]): ReadonlyMap<string, Cells> | undefined {
    if (mode === 'full') this.#merged.set(resource, new Map())
    const merged = this.#merged.get(resource)
    for (const row of rows) merged?.set(row['id'] ?? '', row)
    return merged
  }
}

/** A proven whole read is what `latest-proven` leads to, or an even younger one. */
async function judgePointer({ path, found }: { path: string; found: (words: string) => void }) {
  const pointed = join(dirname(path), '..', 'latest-proven', manifestName)
  const [own, shown] = (await Promise.all([path, pointed].map((one) => readFile(one, 'utf8')))).map(
    (text) => JSON.parse(text) as Manifest,
  )
  if (shown?.verdict !== 'proven') found(`latest-proven is ${shown?.verdict}`)
  if (Date.parse(shown?.startedAt ?? '') < Date.parse(own?.startedAt ?? '')) found('latest-proven is older')
}

function judgeProven({
  manifest,
  rows,
  sandbox,
  merged,
  found,
}: {
  manifest: Manifest
  rows: readonly Cells[]
  sandbox: Sandbox
  merged: ReadonlyMap<string, Cells> | undefined
  found: (words: string) => void
}): void {
  const { control } = sandbox
  const resource = manifest.resource as ListName
  const isFull = manifest.mode === 'full'
  const effects = control.effects().filter((effect) => effect.resource === resource)
  const markAt = (time: string) => effects.findLast(({ at }) => at < Date.parse(time))?.sequence ?? 0
  const [since, until] = [markAt(manifest.startedAt), markAt(manifest.finishedAt)]
  const completeThrough = Date.parse(manifest.completeThrough ?? '')
  const idsOf = (some: typeof effects) => new Set(some.map(({ id }) => String(id)))
  const changed = idsOf(effects.filter(({ sequence }) => sequence > since))
  const returned = idsOf(effects.filter(({ effect }) => effect === 'restore'))
  for (const text of merged === undefined ? [] : control.records({ resource, since, until })) {
    const record = JSON.parse(text) as Fields
    const id = String(record['id'])
    if (Date.parse(String(record[isFull ? 'created' : 'updated'])) > completeThrough) continue
    // Of what changes meanwhile an incremental read promises nothing, and of a full one only that it is there.
    if (!isFull && (changed.has(id) || returned.has(id))) continue
    const row = merged?.get(id)
    if (row === undefined) found(`${id} was there throughout and is not in it`)
    else if (!changed.has(id)) {
      // A value of the wrong type, as a fault sends it, is kept there, whatever the service has.
      const leftover = JSON.parse(row['_extra'] || '{}') as Fields
      for (const [name, value] of Object.entries(record))
        if (
          typeof value === 'string' &&
          name in row &&
          !(name in leftover) &&
          row[name] !== value &&
          row[name] !== `'${value}`
        )
          found(`${id}: ${name} is ${row[name]}, and the service has ${value}`)
    }
  }
  const before = effects.filter(({ sequence, effect }) => sequence <= since && effect !== 'update')
  const last = new Map(before.map(({ id, effect }) => [String(id), effect]))
  for (const { id = '' } of rows)
    if (last.get(id) === 'delete' && !changed.has(id)) found(`${id} was deleted before the read began`)
}
