/**
 * The certificate of a read: the windows that it took, in the order in which it took them, so that others can follow the
 * argument of window.ts without believing this program. scripts/check-certificate.py does so in another language.
 */
import { hash } from 'node:crypto'
import { toTimestamp, type Instant } from '../billing/instants.ts'
import { isNamed, isRecord } from './record.ts'
import type { Key, Window } from './window.ts'

/** How many records a step took: lines with this follow the rows of the table, newest first. */
export interface Taken {
  taken: number
  /** New records that are not in the table: rejected, or met before where a record may come twice. Absent if 0. */
  left?: number
  /**
   * SHA-256 of the keys as the tables have them, a line for each record: its id, and for each table below `;` and the
   * positions of its rows there.
   */
  keys: string
}

/** A chain begins, over the whole list or a range of it: its records lie in `downTo` < key <= `upTo`. */
interface RangeLine {
  range: { upTo: string | null; downTo: string | null }
  /** When the read began, by the service's clock. */
  date: string
  /** It is this machine's clock, because the service does not say. */
  local?: true
  /** ms that a record may take to become visible. */
  lag: number
  /** The statuses that were sampled before the read. */
  statuses?: readonly string[]
  /** The chain reads the records with this status, because the list hides some without it. */
  status?: string
}

/** A window was joined to the chain. */
export interface WindowLine extends Taken {
  page: number
  size: number
  /** Requested newest first. */
  descending?: true
  /** When the service made the response, by its own clock; absent if it does not say, or as in the window before. */
  date?: string
  /** Absent if the page is full. */
  records?: number
  /** The keys of its newest and its oldest record, as the service wrote them; null in an empty one. */
  newest: string | null
  oldest: string | null
  count?: number
  /** The service named no page that follows. */
  last?: true
  /**
   * How many records were not new, each absent if 0: newer than the frontier, taken before at its time, shown before in this
   * response, and beyond the lower bound of the range. With those that were taken or left, they are all that it held.
   */
  newer?: number
  known?: number
  twice?: number
  beyond?: number
}

/** A sweep took records with the key of the frontier, before it was known whether all of them were shown. */
interface TiedLine extends Taken {
  tied: string
}

/** Two sweeps in a row showed the same records of one key, as many as there were places. */
interface SweptLine {
  swept: string
  /** The number of places before, between and after the two sweeps. */
  places: [number, number, number]
  /** SHA-256 of the sorted ids that each of them showed. */
  shown: [string, string]
  /** How many records they showed that have no id. */
  nameless: number
  /** Ids that an earlier sweep took and these did not show: they have left the list. */
  gone: string[]
}

/** The statuses were sampled again after the read. */
interface LookedLine {
  looked: readonly string[]
  /** A record that was sampled before was not read and is still shown: each status is read by a chain of its own. */
  hidden: boolean
}

/** The chain broke: what follows was read page by page and proves nothing. */
interface BrokenLine {
  broken: string
}

export type CertificateLine = RangeLine | WindowLine | TiedLine | SweptLine | LookedLine | BrokenLine

/** A line as a step has it: without sums, which need the ids as they are written. */
export type StepLine =
  | RangeLine
  | LookedLine
  | BrokenLine
  | Omit<WindowLine, 'keys'>
  | Omit<TiedLine, 'keys'>
  | (Pick<SweptLine, 'swept' | 'places'> & {
      shown: [Iterable<string>, Iterable<string>]
      gone: Iterable<string>
    })

const orNull = (instant: Instant | undefined) => (instant === undefined ? null : toTimestamp(instant))
/** Whole seconds, as the Date header has them. */
const toDate = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z')

export function toRangeLine(of: {
  range: { upTo?: Instant; downTo?: Instant }
  startedAt: number
  servedAt?: number
  lag: number
  statuses: readonly string[]
  status: string | undefined
}): RangeLine {
  const { range, startedAt, servedAt, lag, statuses, status } = of
  return {
    range: { upTo: orNull(range.upTo), downTo: orNull(range.downTo) },
    date: toDate(servedAt ?? startedAt),
    ...(servedAt === undefined && { local: true }),
    lag,
    ...(status !== undefined ? { status } : statuses.length > 0 && { statuses }),
  }
}

/** @param options.datedAt what the window before has */
export function toWindowLine(
  window: Window,
  options: Required<Pick<WindowLine, 'newer' | 'known' | 'twice' | 'beyond'>> & {
    key: Key
    datedAt: number | undefined
  },
): Omit<WindowLine, keyof Taken> {
  const { key, datedAt, newer, known, twice, beyond } = options
  const { page, pageSize, descending, records, servedAt, count, follows } = window
  const [first, last] = [keyOf(records[0], key), keyOf(records.at(-1), key)]
  return {
    page,
    size: pageSize,
    ...(descending && { descending }),
    ...(servedAt !== undefined && servedAt !== datedAt && { date: toDate(servedAt) }),
    ...(records.length !== pageSize && { records: records.length }),
    newest: descending ? first : last,
    oldest: descending ? last : first,
    ...(count !== undefined && { count }),
    ...(!follows && { last: true }),
    ...(newer > 0 && { newer }),
    ...(known > 0 && { known }),
    ...(twice > 0 && { twice }),
    ...(beyond > 0 && { beyond }),
  }
}

const keyOf = (record: unknown, key: Key) => (isRecord(record) ? String(record[key]) : null)

/**
 * The lines of a step as text. It has the ids as they are written, so where they are hashed, so is the certificate.
 * @param written for each record of the step its keys as they are written; undefined if it has no row
 */
export function writeLines(
  lines: readonly StepLine[],
  { written, toWritten }: { written: readonly (string | undefined)[]; toWritten: (id: string) => string },
): string {
  let place = 0
  const texts = lines.map((line) => {
    if ('swept' in line) return JSON.stringify(writeSwept(line, toWritten))
    if (!('taken' in line)) return JSON.stringify(line)
    const keys = written.slice(place, (place += line.taken)).filter((one) => one !== undefined)
    const left = (line.left ?? 0) + line.taken - keys.length
    return JSON.stringify({ ...line, taken: keys.length, ...(left > 0 && { left }), keys: sumOf(keys) })
  })
  return texts.map((text) => `${text}\n`).join('')
}

function writeSwept(
  { shown, gone, ...line }: Extract<StepLine, { swept: string }>,
  toWritten: (id: string) => string,
): SweptLine {
  const write = (ids: Iterable<string>) => [...ids].filter(isNamed).map(toWritten).toSorted()
  const [one, other] = shown.map((ids) => sumOf(write(ids))) as [string, string]
  const nameless = [...shown[1]].filter((id) => !isNamed(id)).length
  return { ...line, shown: [one, other], nameless, gone: write(gone) }
}

export const sumOf = (lines: readonly string[]): string => hash('sha256', lines.join('\n'))
