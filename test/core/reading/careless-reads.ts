/** Reads that are nearly right, each without one of the things that make ours safe. What they lose shows why. */
import { choosePageBelow, usualSizes } from '../../../core/reading/find-window.ts'
import { toInstant } from '../../../core/billing/instants.ts'
import type { DriftingList } from './drifting-list.ts'

export interface CarelessRead {
  ids: string[]
  /** Whether it believes that nothing is missing. */
  proven: boolean
}

type Row = { id: string; at: number }

const pageSize = 100

async function ask(list: DriftingList, ordering: string, page: number, size = pageSize) {
  try {
    const { records, next, count } = await list.fetchPage({ ordering, page, pageSize: size, filters: {} })
    const rows = (records as { id: string; created: string }[]).map(({ id, created }): Row => ({
      id,
      at: toInstant(created) ?? NaN,
    }))
    return { rows, next, count: count ?? 0 }
  } catch {
    return { rows: [], next: null, count: 0 }
  }
}

/** Page after page, as everybody does. */
export async function readForward(list: DriftingList): Promise<CarelessRead> {
  const ids = new Set<string>()
  for (let page = 1; ; page++) {
    const { rows, next } = await ask(list, 'created', page)
    for (const { id } of rows) ids.add(id)
    if (next === null) return { ids: [...ids], proven: true }
  }
}

/** From the last page to the first: deletes only deepen the overlap, but nothing tells when that is not enough. */
export async function readBackward(list: DriftingList): Promise<CarelessRead> {
  const ids = new Set<string>()
  const first = await ask(list, 'created', 1)
  for (let page = Math.ceil(first.count / pageSize) + 1; page >= 1; page--)
    for (const { id } of (await ask(list, 'created', page)).rows) ids.add(id)
  return { ids: [...ids], proven: true }
}

/** A chain of links, with one of its rules left out. */
async function readLinked(
  list: DriftingList,
  rules: { strict: boolean; endByNext: boolean },
): Promise<CarelessRead> {
  const ids = new Set<string>()
  const unproven = () => ({ ids: [...ids], proven: false })
  let top = await ask(list, '-created', 1)
  top.rows.reverse()
  if (rules.endByNext) {
    top = await ask(list, 'created', Math.max(1, Math.ceil(top.count / pageSize)))
    if (top.next !== null) return unproven()
  }
  let { rows } = top
  let place = Math.max(1, top.count - rows.length + 1)
  for (;;) {
    for (const { id } of rows) ids.add(id)
    const frontier = rows[0]?.at
    if (frontier === undefined) return unproven()
    let linked = false
    for (let time = 0; time < 10 && !linked; time++) {
      const cut = choosePageBelow(place + time * 3, usualSizes)
      const window = await ask(list, 'created', cut.page, cut.pageSize)
      const newest = window.rows.at(-1)?.at ?? -Infinity
      linked = rules.strict ? newest > frontier : newest >= frontier
      if (!linked) continue
      for (const { id } of window.rows) ids.add(id)
      if (cut.page === 1) return { ids: [...ids], proven: true }
      rows = window.rows
      const oldest = rows[0]?.at ?? NaN
      if (rules.strict && oldest === frontier) return unproven()
      const above = rows.findIndex(({ at }) => (rules.strict ? at > oldest : at >= oldest))
      place = (cut.page - 1) * cut.pageSize + Math.max(0, above)
      if (oldest > frontier) place -= 1
    }
    if (!linked) return unproven()
  }
}

/** Takes a record as old as the frontier for a link: others of that time may lie on the far side of it. */
export const readWithLooseTies = (list: DriftingList) => readLinked(list, { strict: false, endByNext: false })

/** Begins at the window that has no next one: the service counts before it lists, and cuts what came since. */
export const readFromLastPage = (list: DriftingList) => readLinked(list, { strict: true, endByNext: true })

/** Ranges of pages, several at once: plain parallel paging. */
export async function readPagesAtOnce(list: DriftingList): Promise<CarelessRead> {
  const first = await ask(list, 'created', 1)
  const pages = Math.ceil(first.count / pageSize)
  const rest = await Promise.all(
    Array.from({ length: Math.max(0, pages - 1) }, (_, at) => ask(list, 'created', at + 2)),
  )
  return { ids: [first, ...rest].flatMap(({ rows }) => rows.map(({ id }) => id)), proven: true }
}
