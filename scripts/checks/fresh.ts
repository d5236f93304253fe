import { findProven, isOfList } from '../../core/exports/proven.ts'
import type { Publication, PublishedState } from '../../core/state/publications.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { formatDuration } from '../../core/runs/view/format.ts'
import { type Finding, fine, runCheck, wrong } from './places.ts'

/** An export dated further into the future than this, in ms, was dated by a wrong clock. */
const mostAheadMs = 300_000

/**
 * Checks that each exported list has, in each destination, a proven export whose read began at most `withinMs` ago.
 * The time of publishing does not count: kept parts may be published at any time.
 */
export async function checkFresh(options: {
  dataDir: string
  state: PublishedState
  testMode: boolean
  withinMs: number
  /** Where files are published; undefined for the data folder. */
  files: FileStore | undefined
  /** Checks only these destinations. */
  to?: readonly string[] | undefined
}): Promise<Finding[]> {
  const { dataDir, withinMs, to, files, state, testMode } = options
  const all = await state.publications.all({ testMode })
  const published = all
    .filter((one) => to === undefined || to.includes(one.destination))
    // Excel sheets are made once for a person and do not become stale.
    .filter((one) => isOfList(one) && !one.forExcel)
  if (published.length === 0) {
    const where = to === undefined ? '' : ` to ${to.join(', ')}`
    return [
      wrong('fresh', `No list was ever exported${where} from the data folder ${dataDir}, except for Excel.`),
    ]
  }
  const findings = placesOf(published).map((place) => {
    const { resource } = place
    return runCheck(resource, async () => {
      const when = ({ startedAt }: Publication) => Date.parse(startedAt) < Date.now() + mostAheadMs
      const proven = await findProven({ published, files, wanted: { ...place, when } })
      const where = describePlace(place)
      if (proven === undefined) return [wrong(resource, `There is no proven export to ${where}.`)]
      const age = Date.now() - Date.parse(proven.startedAt)
      const message = `The last proven export to ${where} is ${formatDuration(age)} old (${proven.run}).`
      return [age <= withinMs ? fine(resource, message) : wrong(resource, message)]
    })
  })
  return (await Promise.all(findings)).flat()
}

interface Place extends Pick<Publication, 'resource' | 'destination' | 'filters'> {
  place: string | undefined
}

/** For example `csv (/mnt/share), filtered by status`. */
function describePlace({ destination, place, filters }: Place): string {
  const where = place === undefined ? destination : `${destination} (${place})`
  const names = Object.keys(filters)
  return names.length === 0 ? where : `${where}, filtered by ${names.join(', ')},`
}

/**
 * Lists each list and destination once, in the order of their first export. A list that was never exported in full
 * is checked with its last filters.
 */
function placesOf(published: readonly Publication[]): Place[] {
  const places = new Map<string, Place>()
  for (const { resource, destination, place, filters } of published) {
    const key = JSON.stringify([resource, destination, place])
    const known = places.get(key)
    const isKnownWhole = known !== undefined && Object.keys(known.filters).length === 0
    if (!isKnownWhole) places.set(key, { resource, destination, place, filters })
  }
  return [...places.values()]
}
