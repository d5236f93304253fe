import type { Account, Problem } from '../runs/view/view.ts'
import { formatTime } from '../runs/view/format.ts'
import type { Point } from '../runs/view/throughput.ts'
import { manifestName, type Manifest } from './manifest.ts'

/** A manifest in words, for its page. */
export function toExportAccount(manifest: Manifest, points: readonly Point[]): Account {
  const { run, resource, testMode, workspace, destination } = manifest
  return {
    title: `Export of ${resource} to ${destination}`,
    run,
    identity: { mode: testMode ? 'test' : 'live', workspace },
    verdict: toVerdict(manifest),
    problems: toProblems(manifest),
    counts: toCounts(manifest),
    pace: { unit: 'records', points },
    tables: [
      {
        title: 'Tables',
        head: ['file', 'rows', 'bytes'],
        rows: manifest.tables.flatMap(({ files }) =>
          files.map(({ path, rows, bytes }) => [path, rows, bytes]),
        ),
      },
    ],
    facts: toFacts(manifest),
    files: [
      ...manifest.tables.flatMap(({ name, files }) => files.map(({ path }) => ({ name: path, about: name }))),
      ...manifest.rejected.files.map(({ path }) => ({ name: path, about: 'what was no record' })),
      { name: manifestName, about: 'all of this for machines, with the sum of every file' },
    ],
  }
}

function toVerdict({ verdict, scope }: Manifest): Account['verdict'] {
  if (verdict === 'proven') return { word: 'proven', tone: 'good', meaning: scope.join(' ') }
  const advice = 'The last proven export stays where latest-proven leads to. Run it again.'
  return { word: 'unproven', tone: 'doubtful', meaning: [...scope, advice].join(' ') }
}

function toProblems(manifest: Manifest): Problem[] {
  const { reasons, warnings = [], rejected, drift, deletes, capped, missing } = manifest
  const drifted = Object.entries(drift)
  return [
    ...reasons.map((reason) => ({ what: `Not proven: ${reason}.` })),
    ...(capped ? [{ what: 'The read was told to end before the list did.' }] : []),
    ...warnings.map((what) => ({ what })),
    ...(deletes !== undefined && deletes.heldBack > 0
      ? [{ what: `${deletes.heldBack} deleted records were not marked.` }]
      : []),
    ...(rejected.rows > 0
      ? [{ what: `${rejected.rows} entries of the list were no records; they are in rejected.jsonl.` }]
      : []),
    ...(missing !== undefined && missing.rows > 0
      ? [{ what: `${missing.rows} of the ids asked for do not exist.` }]
      : []),
    ...(drifted.length > 0
      ? [
          {
            what: 'Some values do not fit their columns: those are empty there, and the values are in _extra.',
            details: drifted.map(([place, count]) => `${place}: ${count}`),
          },
        ]
      : []),
  ]
}

function toCounts(manifest: Manifest): Account['counts'] {
  const { records, requests, windows, linksRepaired, duplicatesDropped, rejected } = manifest
  return [
    { name: 'records', value: records },
    { name: 'requests', value: requests },
    { name: 'windows', value: windows },
    { name: 'links repaired', value: linksRepaired },
    { name: 'met again, dropped', value: duplicatesDropped },
    { name: 'rejected', value: rejected.rows },
  ]
}

function toFacts(manifest: Manifest): Account['facts'] {
  const { filters, completeThrough, clock, countBefore, countAfter, ties, versions } = manifest
  const named = (values: Readonly<Record<string, string>>) =>
    Object.entries(values).map(([name, value]) => `${name} ${value}`)
  const said = (count: number | null) => (count === null ? 'nothing' : String(count))
  const facts: [string, string][] = [
    ['asked for', askedFor(manifest)],
    ['only where', named(filters).join(', ')],
    ['complete through', completeThrough === null ? '' : `${completeThrough} (${clock} clock)`],
    ['read from', formatTime(manifest.startedAt)],
    ['read until', formatTime(manifest.finishedAt)],
    ['published', formatTime(manifest.publishedAt)],
    ['the list said it holds', `${said(countBefore)} before, ${said(countAfter)} after (a hint only)`],
    ['in the order of', manifest.ordering],
    ['groups of equal times, swept', ties.length === 0 ? '' : String(ties.length)],
    ['left out', manifest.excluded.join(', ')],
    ['hashed', manifest.hashed.join(', ')],
    ['made by', named(versions).join(', ')],
  ]
  return facts.filter(([, value]) => value !== '').map(([name, value]) => ({ name, value }))
}

/** What was asked for, which is not always what came. */
function askedFor({ mode, capped }: Manifest): string {
  if (mode === 'byId') return 'documents by id'
  const asked = mode === 'full' ? 'the whole list' : 'what changed since the last proven export'
  return capped ? `${asked}, up to a cap` : asked
}
