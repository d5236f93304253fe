/** The ids of a fetch. They are part of its plan: the file they came from may change or be deleted. */
export interface RequestedIds {
  /** Each once, in their order. */
  ids: string[]
  /** Remarks about them for a person, one sentence each. */
  notes: string[]
}

/** The source of a fetch's ids. */
export interface IdSource {
  ids(): AsyncIterable<string> | Iterable<string>
  /** The number of rows without an id in the part of the file read so far. */
  empty: number
}

export async function toRequestedIds(source: IdSource): Promise<RequestedIds> {
  const ids = new Set<string>()
  let repeated = 0
  for await (const id of source.ids()) {
    if (ids.has(id)) repeated++
    ids.add(id)
  }
  const notes: string[] = []
  if (repeated > 0)
    notes.push(
      `${repeated === 1 ? '1 id was' : `${repeated} ids were`} given more than once; each is requested once.`,
    )
  const { empty } = source
  if (empty > 0)
    notes.push(`${empty === 1 ? '1 row without an id was' : `${empty} rows without an id were`} skipped.`)
  return { ids: [...ids], notes }
}
