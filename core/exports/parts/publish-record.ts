import { join } from 'node:path'
import type { DestinationName } from '../../destinations/names.ts'
import type { SharedFolder } from '../../storage/cached.ts'

/** The publication state of a read's parts. Parts are kept until every requested destination has them. */
export interface PublishNote {
  /** The destinations where they are visible. */
  destinations: DestinationName[]
  /** All destinations that were ever requested. */
  asked: DestinationName[]
}

const noteFile = (folder: string) => join(folder, 'published.json')

interface Place {
  shared: SharedFolder
  /** The folder of a resource's parts. */
  folder: string
}

/** Loads the publication state of a resource's parts folder; empty if the file is missing or incomplete. */
export const loadPublishNote = async ({ shared, folder }: Place): Promise<PublishNote> =>
  toNote(await shared.read(noteFile(folder)))

function toNote(text = '{}'): PublishNote {
  const none: PublishNote = { destinations: [], asked: [] }
  try {
    return { ...none, ...(JSON.parse(text) as Partial<PublishNote>) }
  } catch {
    return none
  }
}

/** Marks parts as published: they are retained for republishing. */
export async function markPublished(
  place: Place,
  of: { destination: DestinationName; asked: readonly DestinationName[] },
): Promise<void> {
  await change(place, (note) => ({
    ...note,
    destinations: [...new Set([...note.destinations, of.destination])],
    asked: [...new Set([...note.asked, ...of.asked])],
  }))
}

/** Marks parts as being published again: they are retained until the additional destinations have them too. */
export async function markPublishing(place: Place, of: { asked: readonly DestinationName[] }): Promise<void> {
  await change(place, (note) => ({
    ...note,
    asked: [...new Set([...note.asked, ...of.asked])],
  }))
}

/** Whether the parts are published to every requested destination. */
export const isPublished = ({ destinations, asked }: PublishNote): boolean =>
  destinations.length > 0 && asked.every((destination) => destinations.includes(destination))

/** Several destinations of a resource are published to at once and share one file. */
const change = ({ shared, folder }: Place, to: (note: PublishNote) => PublishNote): Promise<void> =>
  shared.update(noteFile(folder), (text) => JSON.stringify(to(toNote(text))))
