/**
 * The certificate of a read: the windows that it took, in the order in which it took them, so that others can follow the
 * argument of window.ts without believing this program. scripts/check-certificate.py does so in another language.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { toTimestamp, type Instant } from '../billing/instants.ts'
import { isNamed, isRecord } from './record.ts'
import type { Key, Window } from './window.ts'

const count = z.int().min(0)
const some = z.int().min(1)
const mark = z.literal(true).exactOptional()

/** How many records a step took: lines with this follow the rows of the table, newest first. */
const taken = {
  taken: count,
  /** New records that are not in the table: rejected, or met before where a record may come twice. */
  left: some.exactOptional(),
  /**
   * SHA-256 of the keys as the tables have them, a line for each record: its id (`escapeId`), and for each table below `;`
   * and the positions of its rows there.
   */
  keys: z.string(),
}
const takenSchema = z.strictObject(taken)
export type Taken = z.infer<typeof takenSchema>

/** A chain begins, over the whole list or a range of it: its records lie in `downTo` < key <= `upTo`. */
const rangeLine = z.strictObject({
  range: z.strictObject({ upTo: z.string().nullable(), downTo: z.string().nullable() }),
  /** When the read began, by the service's clock. */
  date: z.string(),
  /** It is this machine's clock, because the service does not say. */
  local: mark,
  /** ms that a record may take to become visible. */
  lag: count,
  /** The statuses that were sampled before the read. */
  statuses: z.array(z.string()).readonly().exactOptional(),
  /** The chain reads the records with this status, because the list hides some without it. */
  status: z.string().exactOptional(),
})
type RangeLine = z.infer<typeof rangeLine>

/** A window was joined to the chain. */
const windowLine = z.strictObject({
  ...taken,
  page: some,
  size: some,
  /** Requested newest first. */
  descending: mark,
  /** When the service made the response, by its own clock; absent if it does not say, or as in the window before. */
  date: z.string().exactOptional(),
  /** Absent if the page is full. */
  records: count.exactOptional(),
  /** The keys of its newest and its oldest record, as the service wrote them; null in an empty one. */
  newest: z.string().nullable(),
  oldest: z.string().nullable(),
  count: count.exactOptional(),
  /** The service named no page that follows. */
  last: mark,
  /**
   * How many records were not new: newer than the frontier, taken before at its time, shown before in this response, and
   * beyond the lower bound of the range. With those that were taken or left, they are all that it held.
   */
  newer: some.exactOptional(),
  known: some.exactOptional(),
  twice: some.exactOptional(),
  beyond: some.exactOptional(),
})
export type WindowLine = z.infer<typeof windowLine>

/** A sweep took records with the key of the frontier, before it was known whether all of them were shown. */
const tiedLine = z.strictObject({ ...taken, tied: z.string() })

/** Two sweeps in a row showed the same records of one key, as many as there were places. */
const sweptLine = z.strictObject({
  swept: z.string(),
  /** The number of places before, between and after the two sweeps. */
  places: z.tuple([count, count, count]),
  /** SHA-256 of the sorted ids that each of them showed. */
  shown: z.tuple([z.string(), z.string()]),
  /** How many records they showed that have no id. */
  nameless: count,
  /** Ids that an earlier sweep took and these did not show: they have left the list. */
  gone: z.array(z.string()),
})
type SweptLine = z.infer<typeof sweptLine>

/** The statuses were sampled again after the read. */
const lookedLine = z.strictObject({
  looked: z.array(z.string()).readonly(),
  /** A record that was sampled before was not read and is still shown: each status is read by a chain of its own. */
  hidden: z.boolean(),
})
type LookedLine = z.infer<typeof lookedLine>

/** The chain broke: what follows was read page by page and proves nothing. */
const brokenLine = z.strictObject({ broken: z.string() })
type BrokenLine = z.infer<typeof brokenLine>

export const certificateLine = z.union([rangeLine, windowLine, tiedLine, sweptLine, lookedLine, brokenLine])
export type CertificateLine = z.infer<typeof certificateLine>

/** A line as a step has it: without sums, which need the ids as they are written. */
export type StepLine =
  | RangeLine
  | LookedLine
  | BrokenLine
  | Omit<WindowLine, 'keys'>
  | Omit<z.infer<typeof tiedLine>, 'keys'>
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

/** An id of any text, so that nobody can take a part of it for positions, or for another record. */
export const escapeId = (id: string): string => id.replaceAll(/[\\;\n]/g, String.raw`\$&`)

export const sumOf = (lines: readonly string[]): string => hash('sha256', lines.join('\n'))
