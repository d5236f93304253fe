import type { Instant } from './instant.ts'
import { toInstant } from './instant.ts'
import type { Reading } from './reading.ts'
import { idOf, isRecord } from './record.ts'
import { Source } from './source.ts'
import type { Watched } from './state.ts'

/**
 * Records that the list does not show unless their status is asked for. Before the read a window of each status
 * is looked at; an id in it that the read never meets, and that still shows under the status, is hidden.
 */
export async function watchStatuses(reading: Reading): Promise<void> {
  const { resource } = reading.options
  const watched: Watched = {}
  for (const status of resource.statuses ?? []) {
    const { ids, servedAt } = await shownUnder(reading, status)
    if (reading.state.clock === 'local' && servedAt !== undefined) reading.serviceTime(servedAt)
    for (const id of ids.keys()) watched[id] = status
  }
  reading.state.watched = watched
}

/** Whether any id that was not met still shows under a status after the read, asked twice. */
export async function findHidden(reading: Reading): Promise<boolean> {
  const { watched = {}, completeThrough } = reading.state
  let missing = Object.keys(watched)
  for (let time = 1; time <= 2 && missing.length > 0; time++) {
    const shown = new Map<string, Instant | undefined>()
    for (const status of reading.options.resource.statuses ?? [])
      for (const [id, created] of (await shownUnder(reading, status)).ids) shown.set(id, created)
    missing = missing.filter((id) => (shown.get(id) ?? Infinity) <= completeThrough)
  }
  return missing.length > 0
}

/** The newest records of one status: their ids and when they were created. */
async function shownUnder(reading: Reading, status: string) {
  const { options, requests } = reading
  const filters = { ...options.filters, status }
  const source = new Source({
    key: 'created',
    filters,
    fetchPage: options.fetchPage,
    requests,
    sizes: undefined,
  })
  const { records, servedAt } = await source.page({
    page: 1,
    pageSize: source.sizes.most,
    ordering: '-created',
  })
  const ids = new Map<string, Instant | undefined>()
  for (const record of records) {
    const id = idOf(record)
    if (id !== undefined && isRecord(record)) ids.set(id, toInstant(record['created']))
  }
  return { ids, servedAt }
}
