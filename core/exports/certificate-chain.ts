import { toInstant } from '../billing/instants.ts'
import { clocksDifferMs } from '../billing/reply.ts'
import { type CertificateLine, sumOf, type Taken, type WindowLine } from '../reading/certificate.ts'

/** A record as its row has it; `at` is undefined if the table does not show its time, and NaN if the row has none. */
export interface Row {
  id: string
  /** With the positions of its rows in the tables below, as `Taken.keys` has them. */
  keys: string
  at: number | undefined
}

/** What a certificate claims does not hold, as half a sentence. */
export class DoesNotHold extends Error {}

export function need(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new DoesNotHold(otherwise)
}

export function instantOf(time: string | null, absent?: number): number {
  const instant = time === null ? absent : toInstant(time)
  need(instant !== undefined, `${time} is not a time`)
  return instant
}

/**
 * Follows the lines; after each, the state is what is known.
 * @param rejected how many records are in rejected.jsonl
 */
export function createChain(rows: readonly Row[] | undefined, rejected: number) {
  /** Their time is excluded or hashed: nothing tells which of them a sweep showed. */
  const isUndated = rows?.some(({ at }) => at === undefined) ?? true
  const state = {
    /** Rows that were taken, those before the present range, and windows that were joined. */
    place: 0,
    before: 0,
    windows: 0,
    /** Complete through this time, as the responses until now show. */
    through: Infinity,
    /** The lower bound of all ranges until now, and of the present one. */
    down: Infinity,
    lower: -Infinity,
    frontier: Infinity,
    closed: true,
    /** The chain of the range has come to its end; the top of the list was empty; both of its ends were. */
    ended: true,
    isTopEmpty: false,
    isEmpty: false,
    /** Records of the range that are not in the table, or elsewhere in it. */
    left: 0,
    began: undefined as number | undefined,
    lag: 0,
    statuses: [] as readonly string[],
    /** What the look at the statuses after the read found. */
    looked: undefined as 'hidden' | 'clear' | undefined,
    /** The statuses that have yet to be read, because the list hides records. */
    due: [] as readonly string[],
  }

  function take(line: Taken, { low, high }: { low: number; high: number }): number[] {
    const { left = 0 } = line
    need(left <= state.place + rejected, 'it left records that were not met before')
    const taken = rows?.slice(state.place, state.place + line.taken)
    state.place += line.taken
    state.left += left
    if (taken === undefined) return []
    const isSame = taken.length === line.taken && sumOf(taken.map(({ keys }) => keys)) === line.keys
    need(isSame, 'the tables have other rows')
    const times = taken.flatMap(({ at }) => at ?? [])
    need(
      times.every((at, index) => at <= (times[index - 1] ?? Infinity)),
      'the records are not in the order of time',
    )
    const isInside = times.every((at) => low <= at && at <= high && at > state.lower)
    need(isInside, 'a record lies outside of its window')
    return times
  }

  /** Of the records that the range took, the place of the first at the frontier's time, or of all if they show no times. */
  function firstAtFrontier(): number {
    let first = isUndated ? state.before : state.place
    while (first > state.before && rows?.[first - 1]?.at === state.frontier) first--
    return first
  }

  function addWindow(line: WindowLine): void {
    const { page, size, records = size, descending = false } = line
    const [isTop, isBottom] = [page === 1 && descending, page === 1 && !descending]
    // A list whose ends were both empty may have been read on: the last that its range shows counts.
    need(!state.ended || state.isEmpty, 'a window after the end of its range')
    need(
      records === size || (records < size && line.last === true),
      'a page that another follows is not full',
    )
    const isCounted = records === size || (line.count ?? 0) <= (page - 1) * size + records
    need(isCounted, 'the last page holds fewer records than the service counted')
    if (line.date !== undefined && state.began !== undefined) {
      const date = instantOf(line.date)
      need(date >= state.began - clocksDifferMs * 1000, 'the response is older than the read')
      state.through = Math.min(state.through, date - state.lag)
    }
    const { newer = 0, known = 0, twice = 0, beyond = 0, taken, left = 0 } = line
    need(
      newer + known + twice + beyond + taken + left === records,
      'it took more or fewer records than the response held',
    )
    if (records === 0) {
      state.ended = state.isEmpty = isBottom && state.isTopEmpty
      state.isTopEmpty = isTop
      return
    }
    state.isTopEmpty = state.isEmpty = false
    state.windows++
    const { frontier, closed, lower } = state
    const isKnown = known <= state.place - firstAtFrontier() + state.left
    need(isKnown, "it knew more records of the frontier's time than were taken")
    const [newest, oldest] = [instantOf(line.newest), instantOf(line.oldest)]
    const [isAbove, isBeyond] = [newest > frontier, oldest <= lower]
    need(isAbove === newer > 0, 'the records newer than the frontier were miscounted')
    need(isBeyond === beyond > 0, 'the records beyond the range were miscounted')
    const isLinked = isTop || isAbove || (closed && newest === frontier)
    need(isLinked, 'the window does not reach above the frontier: records may be missing there')
    need(isBottom || oldest < frontier, 'the window does not reach below the frontier')
    const times = take(line, { low: oldest, high: Math.min(newest, frontier) })
    const isNewestTaken = times.length === 0 || times[0] === newest
    need(newer + known + left > 0 || isNewestTaken, 'its newest record was not taken')
    if (lower < oldest && oldest < frontier) {
      const isTaken = line.taken > 0 && (times.length === 0 || times.at(-1) === oldest)
      need(left > 0 || isTaken, 'its oldest record was not taken')
      Object.assign(state, { frontier: oldest, closed: false })
    }
    state.ended = isBottom || isBeyond
  }

  function add(line: CertificateLine): void {
    if ('broken' in line) throw new DoesNotHold(`the chain broke: ${line.broken}`)
    if ('page' in line) return addWindow(line)
    if ('looked' in line) {
      need(
        state.ended && line.looked.join() === state.statuses.join(),
        'other statuses were sampled before the read',
      )
      need(state.looked === undefined, 'the statuses were sampled twice after the read')
      // A list without records is not read on after this.
      state.isEmpty = false
      state.looked = line.hidden ? 'hidden' : 'clear'
      state.due = line.hidden ? state.statuses : []
    } else if ('range' in line) {
      const [upper, lower] = [instantOf(line.range.upTo, Infinity), instantOf(line.range.downTo, -Infinity)]
      need(state.ended, 'the range before has not ended')
      if (line.status === undefined) {
        need(upper === state.down, 'the range does not begin where the one before it ends')
        need(state.looked === undefined, 'the statuses were sampled again before the range was read')
        const { statuses = [] } = line
        const isSame = state.down === Infinity || statuses.join() === state.statuses.join()
        need(isSame, 'other statuses than in the range before')
        Object.assign(state, { down: lower, statuses })
      } else {
        const isWhole = upper === Infinity && lower === -Infinity
        need(line.status === state.due[0] && isWhole, 'another status is due')
        state.due = state.due.slice(1)
      }
      state.lag = line.lag * 1000
      const began = instantOf(line.date)
      // Dates of the service are compared with its own clock only.
      state.began = line.local === true ? undefined : began
      state.through = Math.min(state.through, began - state.lag)
      Object.assign(state, { before: state.place, lower, frontier: upper, closed: upper === Infinity })
      Object.assign(state, { ended: false, isTopEmpty: false, isEmpty: false, left: 0 })
    } else if ('tied' in line) {
      const isOfFrontier = instantOf(line.tied) === state.frontier && (!state.ended || state.isEmpty)
      need(isOfFrontier, "a sweep of another time than the frontier's")
      state.ended = state.isTopEmpty = state.isEmpty = false
      take(line, { low: state.frontier, high: state.frontier })
    } else {
      const { swept, places, shown, gone } = line
      need(instantOf(swept) === state.frontier, "a sweep of another time than the frontier's")
      need(new Set(places).size === 1, 'the number of places changed between the sweeps')
      need(shown[0] === shown[1], 'the two sweeps showed different records')
      const isTaken = places[0] <= state.place - firstAtFrontier() + state.left
      need(isTaken, 'the sweeps showed more records than were taken')
      // One that was left has no row here.
      if (rows !== undefined && !isUndated && state.left === 0) {
        const ids = new Set(rows.slice(firstAtFrontier(), state.place).map(({ id }) => id)).difference(
          new Set(gone),
        )
        need(sumOf([...ids].toSorted()) === shown[0], 'the table has other records than the sweeps showed')
        need(ids.size === places[0], 'the sweeps did not show a record for each place')
      }
      state.closed = true
    }
  }

  return { state, add }
}
