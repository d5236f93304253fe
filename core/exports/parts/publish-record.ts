import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../storage/durable.ts'
import { createTurns } from '../../storage/keyed-mutex.ts'
import type { DestinationName } from '../../destinations/names.ts'
import type { Execution } from '../../runs/name.ts'

/** What became of a read's parts. They are kept until every destination that was asked for has them. */
export interface PublishNote {
  /** Where they are visible. With the first, no later run goes on from them any more. */
  destinations: DestinationName[]
  /** Where they were ever to be published. */
  asked: DestinationName[]
  /** Runs that publish them again, or did: while one is at work nobody may take them away. */
  publishing: Execution[]
}

const noteFile = (folder: string) => join(folder, 'published.json')

/** The note of a resource's folder of parts; an empty one where there is none, or a torn one. */
export async function loadPublishNote(folder: string): Promise<PublishNote> {
  const none: PublishNote = { destinations: [], asked: [], publishing: [] }
  const text = await readFile(noteFile(folder), 'utf8').catch(() => '{}')
  try {
    return { ...none, ...(JSON.parse(text) as Partial<PublishNote>) }
  } catch {
    return none
  }
}

/** From here on the parts are kept to publish from again, and no later run goes on from them. */
export async function markPublished(
  folder: string,
  of: { destination: DestinationName; asked: readonly DestinationName[] },
): Promise<void> {
  await change(folder, (note) => ({
    ...note,
    destinations: [...new Set([...note.destinations, of.destination])],
    asked: [...new Set([...note.asked, ...of.asked])],
  }))
}

/** From here on the parts stay until they have been published there, too. */
export async function markPublishing(
  folder: string,
  of: { execution: Execution; asked: readonly DestinationName[] },
): Promise<void> {
  await change(folder, (note) => ({
    ...note,
    asked: [...new Set([...note.asked, ...of.asked])],
    publishing: [...note.publishing.filter(({ runId }) => runId !== of.execution.runId), of.execution],
  }))
}

/** Whether nothing of what was asked for is still to be done with the parts. */
export const isPublished = ({ destinations, asked }: PublishNote): boolean =>
  destinations.length > 0 && asked.every((destination) => destinations.includes(destination))

const turns = createTurns()

/** One at a time in a data folder: taking parts over, and saying that they are in use. */
export const takeTurn = <T>(dataDir: string, work: () => Promise<T>): Promise<T> => turns.take(dataDir, work)

/** Several destinations of a resource are published to at once, and have one note. */
const change = (folder: string, to: (note: PublishNote) => PublishNote): Promise<void> =>
  turns.take(folder, async () =>
    replaceFile(noteFile(folder), JSON.stringify(to(await loadPublishNote(folder)))),
  )
