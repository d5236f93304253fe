import type { Problem, View } from '../../runs/view/view.ts'
import { manifestName, type Manifest } from './manifest.ts'

/** Builds the view of one published export, for the page beside its manifest. */
export function toManifestView(manifest: Manifest): View {
  const { run, resource, testMode, workspace, destination } = manifest
  return {
    title: `Export of ${resource} to ${destination}`,
    run,
    identity: { mode: testMode ? 'test' : 'live', workspace },
    verdict: toVerdict(manifest),
    problems: toProblems(manifest),
    counts: toCounts(manifest),
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
      ...manifest.rejected.files.map(({ path }) => ({ name: path, about: 'entries that are not records' })),
      { name: manifestName, about: 'all of this for machines, with the sum of every file' },
    ],
  }
}

function toVerdict({ verdict, scope }: Manifest): NonNullable<View['verdict']> {
  if (verdict === 'proven') return { word: 'proven', tone: 'good', meaning: scope.join(' ') }
  const advice = 'The last proven export stays where latest-proven leads to. Run it again.'
  return { word: 'unproven', tone: 'doubtful', meaning: [...scope, advice].join(' ') }
}

function toProblems(manifest: Manifest): Problem[] {
  const { reasons, warnings = [], rejected, deletes, capped, missing } = manifest
  return [
    ...reasons.map((reason) => ({ text: `Not proven: ${reason}.` })),
    ...(capped ? [{ text: 'The read was told to end before the list did.' }] : []),
    ...warnings.map((text) => ({ text })),
    ...(deletes !== undefined && deletes.heldBack > 0
      ? [{ text: `${deletes.heldBack} deleted records were not marked.` }]
      : []),
    ...(rejected.rows > 0
      ? [{ text: `${rejected.rows} entries of the list were not records; they are in rejected.jsonl.` }]
      : []),
    ...(missing !== undefined && missing.rows > 0
      ? [{ text: `${missing.rows} of the ids asked for do not exist.` }]
      : []),
  ]
}

function toCounts(manifest: Manifest): NonNullable<View['counts']> {
  const { records, requests, windows, linksRepaired, duplicatesDropped, rejected } = manifest
  return [
    { name: 'records', value: records },
    { name: 'requests', value: requests },
    { name: 'windows', value: windows },
    { name: 'links repaired', value: linksRepaired },
    { name: 'duplicates dropped', value: duplicatesDropped },
    { name: 'rejected', value: rejected.rows },
  ]
}

function toFacts(manifest: Manifest): NonNullable<View['facts']> {
  const { filters, completeThrough, clock, countBefore, countAfter, ties, versions } = manifest
  const named = (values: Readonly<Record<string, string>>) =>
    Object.entries(values).map(([name, value]) => `${name} ${value}`)
  const countOf = (count: number | null) => (count === null ? 'nothing' : String(count))
  const facts: [string, NonNullable<View['facts']>[number]['value']][] = [
    ['asked for', askedFor(manifest)],
    ['only where', named(filters).join(', ')],
    ['complete through', completeThrough === null ? '' : `${completeThrough} (${clock} clock)`],
    ['read from', { time: manifest.startedAt }],
    ['read until', { time: manifest.finishedAt }],
    ['published', { time: manifest.publishedAt }],
    ['count given by the list', `${countOf(countBefore)} before, ${countOf(countAfter)} after (a hint only)`],
    ['ordering', manifest.ordering],
    ['tie groups swept', ties.length === 0 ? '' : String(ties.length)],
    ['excluded', manifest.excluded.join(', ')],
    ['hashed', manifest.hashed.join(', ')],
    ['made by', named(versions).join(', ')],
  ]
  return facts.filter(([, value]) => value !== '').map(([name, value]) => ({ name, value }))
}

/** Describes the requested read; the result may be less. */
function askedFor({ mode, capped }: Manifest): string {
  if (mode === 'byId') return 'documents by id'
  const asked = mode === 'full' ? 'the whole list' : 'what changed since the last proven export'
  return capped ? `${asked}, up to a cap` : asked
}
