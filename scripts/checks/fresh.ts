import { findProven, readPublished, type PublishedNote } from '../../destinations/published-notes.ts'
import { formatDuration } from '../terminal/format.ts'
import { fine, look, wrong, type Finding } from './finding.ts'

/** Whether each list that is exported has, in each place it goes to, a proven export no older than so many ms. */
export async function checkFresh(options: {
  dataDir: string
  testMode: boolean
  withinMs: number
  /** Only these destinations. */
  to?: readonly string[] | undefined
}): Promise<Finding[]> {
  const { dataDir, testMode, withinMs, to } = options
  const all = await readPublished({ dataDir, testMode })
  const published = all.filter(({ destination }) => to === undefined || to.includes(destination))
  if (published.length === 0) {
    const where = to === undefined ? '' : ` to ${to.join(', ')}`
    return [wrong('fresh', `Nothing was ever exported${where} with the data folder ${dataDir}.`)]
  }
  const findings = placesOf(published).map(({ resource, destination, place }) =>
    look(resource, async () => {
      const when = () => true
      const proven = await findProven({ published, wanted: { resource, destination, place, when } })
      const where = place === undefined ? destination : `${destination} (${place})`
      if (proven === undefined) return [wrong(resource, `There is no proven export of it to ${where}.`)]
      const age = Date.now() - Date.parse(proven.publishedAt)
      const says = `The last proven export to ${where} is ${formatDuration(age)} old (${proven.run}).`
      return [age <= withinMs ? fine(resource, says) : wrong(resource, says)]
    }),
  )
  return (await Promise.all(findings)).flat()
}

/** Each list and place once, in the order they first came. */
function placesOf(published: readonly PublishedNote[]) {
  const places = new Map(
    published.map(({ resource, destination, place }) => [
      JSON.stringify([resource, destination, place]),
      { resource, destination, place },
    ]),
  )
  return [...places.values()]
}
