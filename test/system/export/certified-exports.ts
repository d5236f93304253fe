import * as fc from 'fast-check'
import { Big } from 'big.js'
import { createHash } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toExactInstant, toInstant, toTimestamp } from '../../../core/billing/instants.ts'
import type { Manifest } from '../../../core/destinations/manifest.ts'
import { anyList } from '../../core/reading/any-list.ts'
import { createRandom, DriftingList, type Random } from '../../core/reading/drifting-list.ts'
import { readInRanges } from '../../core/reading/read-in-ranges.ts'
import {
  contactsOf,
  keysOf,
  readOptions,
  readThrough,
  type Row,
  type Taken,
} from '../../core/reading/read-through.ts'

/** 10,000 with CERTIFICATES=10000. */
export const certificates = Number(process.env['CERTIFICATES'] ?? 250)
export const seed = Number(process.env['READ_SEED'] ?? 20_261_126)

type Line = Record<string, unknown>

/** An export of a list that changed while it was read, as it lies in a folder. */
export interface CertifiedExport {
  rows: (Pick<Row, 'id' | 'created'> & { contacts: string[] })[]
  /** Contacts of a record that has no row. */
  orphans?: string[]
  lines: Line[]
  verdict: 'proven' | 'unproven'
  completeThrough: string | null
  reasons: string[]
  windows: number
  /** What the forger writes into the rows in place of each empty amount. */
  amount?: string
  /** A field that its first or its last line lacks. */
  lacks?: string
  facts: Pick<Taken['outcome'], 'clock' | 'hiddenFound' | 'statusCheck'>
  /** What the forger writes over the first line of the table. */
  header?: string
  /** What the forger changes in the manifest, and so in the first and the last line of the certificate. */
  forge?: (manifest: Manifest) => void
}

const anyRead = fc.record({
  // Some windows are enough for a certificate.
  list: anyList.map((list) => ({ ...list, size: Math.ceil(list.size / 2) })),
  crash: fc.constantFrom(0, 0, 0.05, 0.3),
  most: fc.integer({ min: 0, max: 5 }),
})

/** Exports of drifting lists, whole or in ranges, by processes that crash; none where the service was down. */
export async function* certifiedExports(): AsyncGenerator<CertifiedExport> {
  // One after the other, as many as are taken.
  for (let part = 0; ; part++)
    for (const { list: options, crash, most } of fc.sample(anyRead, { numRuns: 100, seed: seed + part })) {
      const list = new DriftingList(options)
      let served = readOptions.now()
      const fetchPage: typeof list.fetchPage = async (request) => ({
        ...(await list.fetchPage(request)),
        servedAt: (served += 1_000),
      })
      const how = { crash, random: createRandom(options.seed + 1) }
      const read = { fetchPage, serviceTime: served }
      const taken = await (
        most === 0
          ? readThrough(read, how)
          : readInRanges(read, { ...how, divide: { count: list.now.length, most }, namesRepeated: true })
      ).catch((error: Error) => {
        if (!['ServiceFault', 'NotFound'].includes(error.name)) throw error
      })
      if (taken !== undefined) yield toCertified(taken)
    }
}

export function toCertified({ outcome, rows, certificate }: Taken): CertifiedExport {
  const { verdict, completeThrough, reasons, windows, clock, hiddenFound, statusCheck } = outcome
  const lines = certificate.split('\n').slice(0, -1)
  return {
    rows: rows.map(({ id, created }) => ({ id, created, contacts: contactsOf(id) })),
    lines: lines.map((line) => JSON.parse(line) as Line),
    verdict,
    completeThrough,
    reasons,
    windows,
    facts: { clock, hiddenFound, ...(statusCheck !== undefined && { statusCheck }) },
  }
}

/** How the lines and the manifest are written. */
export interface Spelling {
  stringify?: (value: unknown) => string
}

/** Writes an export as the destination does; sizes and sums fit, whatever it holds. */
export async function writeCertified(
  folder: string,
  exported: CertifiedExport,
  { stringify = JSON.stringify }: Spelling = {},
): Promise<Manifest> {
  const { rows, lines, verdict, completeThrough, reasons, windows, orphans = [] } = exported
  const customers = rows.map(({ id, created }) => ({
    id,
    created,
    currency: currencyOf(id),
    amount: amountOf(id),
  }))
  const written = customers.map((row) => ({ ...row, amount: row.amount || (exported.amount ?? '') }))
  const table = `${exported.header ?? 'id,created,currency,amount'}\n${written.map(toLine).join('')}`
  const contacts = [...rows, { id: 'nobody', contacts: orphans }].flatMap(({ id, contacts }) =>
    contacts.map((position) => ({ id, position, amount: amountOf(`${id} ${position}`) })),
  )
  const below = `customer_id,position,amount\n${contacts.map(toLine).join('')}`
  const totals = toTotals(rows, { 'customers.amount': customers, 'customer_contacts.amount': contacts })
  const toFile = (path: string, content: string, count: number) => {
    const sha256 = createHash('sha256').update(content).digest('hex')
    return { path, rows: count, bytes: Buffer.byteLength(content), sha256 }
  }
  const count = lines.length + 2
  const certificate = toFile('certificate.jsonl', '', count)
  const manifest = {
    version: 1,
    resource: 'customers',
    destination: 'csv',
    workspace: 'acc_1',
    testMode: false,
    mode: 'full',
    filters: {},
    ordering: 'created',
    ...exported.facts,
    verdict,
    reasons,
    completeThrough,
    records: rows.length,
    windows,
    totals,
    drift: {},
    hashed: [],
    dialect: { delimiter: ',', formulaGuard: false },
    tables: [
      {
        name: 'customers',
        key: ['id'],
        columns: [
          { name: 'id', kind: 'text', source: 'customers.id' },
          { name: 'created', kind: 'timestamp', source: 'customers.created' },
          { name: 'currency', kind: 'text', source: 'customers.currency' },
          { name: 'amount', kind: 'decimal', source: 'customers.amount' },
        ],
        rows: rows.length,
        files: [toFile('customers.csv', table, rows.length)],
      },
      {
        name: 'customer_contacts',
        parent: 'customers',
        key: ['customer_id', 'position'],
        columns: [
          { name: 'customer_id', kind: 'text', source: 'customers.id' },
          { name: 'position', kind: 'integer', source: 'customers.contacts' },
          { name: 'amount', kind: 'decimal', source: 'customers.contacts.amount' },
        ],
        rows: contacts.length,
        files: [toFile('customer_contacts.csv', below, contacts.length)],
      },
    ],
    rejected: { rows: 0, files: [] },
    certificate: { rows: count, files: [certificate] },
  } as unknown as Manifest
  exported.forge?.(manifest)
  const { resource, workspace, testMode, mode, filters, ordering: key, changedSince = null } = manifest
  const head = { certificate: 1, resource, workspace, testMode, mode, filters, key, changedSince }
  const end = { end: verdict, reasons, completeThrough, records: rows.length, windows }
  for (const line of [head, end]) Reflect.deleteProperty(line, exported.lacks ?? '')
  const text = [head, ...lines, end].map((line) => `${stringify(line)}\n`).join('')
  Object.assign(certificate, toFile('certificate.jsonl', text, count))
  await mkdir(folder)
  await writeFile(join(folder, 'customers.csv'), table)
  await writeFile(join(folder, 'customer_contacts.csv'), below)
  await writeFile(join(folder, 'certificate.jsonl'), text)
  await writeFile(join(folder, 'manifest.json'), stringify(manifest))
  return manifest
}

const toLine = (row: object) =>
  `${Object.values(row)
    .map((cell: string) => (/[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
    .join()}\n`

const noises = new Map<string, { amount: string; currency: string }>()
const amountsOf = ([one, two, three]: Buffer) =>
  ['', '-0.10', '1e3', '0', '12345678901234567890.25', `${one}.${two}`, `-${three}`] as const
const currencies = ['CLP', 'USD', 'CLF', '', 'peso'] as const

/** The money of a record, the same each time: with few and many digits, and without a value or a currency. */
function moneyOf(text: string) {
  const known = noises.get(text)
  if (known !== undefined) return known
  const noise = createHash('sha256').update(text).digest()
  const money = { amount: amountsOf(noise)[noise[3]! % 7]!, currency: currencies[noise[4]! % 5]! }
  noises.set(text, money)
  return money
}
const amountOf = (text: string): string => moneyOf(text).amount
const currencyOf = (id: string): string => moneyOf(id).currency

/** Added up by other code than the product's. */
function toTotals(
  rows: CertifiedExport['rows'],
  tables: Record<string, readonly { id: string; amount: string }[]>,
): Manifest['totals'] {
  const add = (texts: readonly string[]) => {
    const places = texts.map((text) => (text.includes('e') ? 0 : (text.split('.')[1]?.length ?? 0)))
    return texts.reduce((sum, text) => sum.plus(text), new Big(0)).toFixed(Math.max(0, ...places))
  }
  const columns = Object.entries(tables).map(([name, all]) => {
    const values = all.filter(({ amount }) => amount !== '')
    const groups = Map.groupBy(values, ({ id }) => (currencyOf(id) === 'peso' ? 'other' : currencyOf(id)))
    const byCurrency = Array.from(groups, ([group, own]) => [group, add(own.map(({ amount }) => amount))])
    const sum = add(values.map(({ amount }) => amount))
    const counts = { empty: all.length - values.length, unreadable: 0 }
    return [name, { sum, ...counts, byCurrency: Object.fromEntries(byCurrency) as Record<string, string> }]
  })
  const times = rows
    .map(({ created }) => created)
    .toSorted((a, b) => Number(toExactInstant(a)! - toExactInstant(b)!))
  const [oldest, newest] = [times[0], times.at(-1)]
  const byMonth = Array.from(
    Map.groupBy(times, (time) => time.slice(0, 7)),
    ([month, { length }]) => [month, length] as const,
  )
  const months = Object.fromEntries(byMonth)
  return {
    columns: Object.fromEntries(columns) as Manifest['totals']['columns'],
    ...(oldest !== undefined && newest !== undefined && { created: { oldest, newest, months } }),
  }
}

/** JSON with its keys in the opposite order, and spaces. */
export function spellOtherwise(value: unknown): string {
  const turn = (one: unknown): unknown =>
    one !== null && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(
          Object.entries(one)
            .toReversed()
            .map(([name, inner]) => [name, turn(inner)]),
        )
      : Array.isArray(one)
        ? one.map(turn)
        : one
  return JSON.stringify(turn(value), null, ' ').replaceAll('\n', '  ')
}

/** A change that makes the claim false; false if it cannot be made here. */
type Mutant = (exported: CertifiedExport, random: Random) => boolean

const sumOf = (ids: readonly string[]) => createHash('sha256').update(ids.join('\n')).digest('hex')
const take = (line: Line | undefined) => Number(line?.['taken'] ?? 0)
const moved = (time: unknown, years: number) =>
  String(time).replace(/^\d+/, (year) => `${Number(year) + years}`)

/** The places of the windows that took something. */
const windowsOf = ({ lines }: CertifiedExport) =>
  lines.flatMap((line, place) => ('page' in line && take(line) > 0 ? [place] : []))
export const rowsBefore = ({ lines }: CertifiedExport, place: number) =>
  lines.slice(0, place).reduce((sum, line) => sum + take(line), 0)
const pick = <T>(all: readonly T[], random: Random): T | undefined => all[Math.floor(random() * all.length)]

const onWindow =
  (change: (exported: CertifiedExport, place: number, line: Line) => boolean | void): Mutant =>
  (exported, random) => {
    const place = pick(windowsOf(exported), random)
    return place !== undefined && change(exported, place, exported.lines[place]!) !== false
  }
const onRow =
  (change: (rows: CertifiedExport['rows'], place: number) => void): Mutant =>
  ({ rows }, random) => {
    if (rows.length === 0) return false
    change(rows, Math.floor(random() * rows.length))
    return true
  }
const onSweep =
  (change: (line: Line) => void): Mutant =>
  ({ lines }) => {
    const line = lines.find((one) => 'swept' in one && (one['places'] as number[])[0]! > 0)
    if (line !== undefined) change(line)
    return line !== undefined
  }

/** The next window of the same range that took something, right behind. */
function nextTo({ lines }: CertifiedExport, place: number): Line | undefined {
  const next = lines[place + 1]
  return next !== undefined && 'page' in next && take(next) > 0 ? next : undefined
}

/**
 * Whether the next window holds all that this one does: it reaches above the frontier by itself. Without this one, its line
 * says that it took little, and nothing contradicts that: the service could have answered so.
 */
function isCoveredByNext({ lines }: CertifiedExport, place: number): boolean {
  const before = lines[place - 1]!
  const range = before['range'] as { upTo: string | null } | undefined
  const frontier = range === undefined ? (before['oldest'] ?? before['swept'] ?? before['tied']) : range.upTo
  const next = lines[place + 1]
  if (next === undefined || !('page' in next)) return false
  const isTop = next['page'] === 1 && next['descending'] === true
  return isTop || (frontier !== null && toInstant(next['newest'])! > toInstant(frontier)!)
}

const onTotals =
  (change: (totals: Manifest['totals']) => void): Mutant =>
  (exported) => {
    if (exported.rows.length === 0) return false
    exported.forge = ({ totals }) => change(totals)
    return true
  }
const amounts = 'customers.amount'

/** Removes the row of a swept record, and says in the line that took it, which is returned, that it has none. */
function leaveSwept(exported: CertifiedExport): Line | undefined {
  const { rows, lines } = exported
  const swept = lines.findIndex((line) => 'swept' in line)
  const place = lines.slice(0, Math.max(0, swept)).findLastIndex((line) => take(line) > 0)
  const line = lines[place]
  if (line === undefined) return undefined
  const from = rowsBefore(exported, place)
  rows.splice(from + take(line) - 1, 1)
  const taken = rows.slice(from, from + take(line) - 1)
  return Object.assign(line, { taken: taken.length, left: 1, keys: sumOf(taken.map(keysOf)) })
}

/** Makes the counts of each window fit what it took: the forger knows that they are added up. */
export function fitCounts({ lines }: CertifiedExport): void {
  for (const line of lines) {
    if (!('page' in line) || line['newest'] === null) continue
    const others = ['newer', 'known', 'beyond', 'taken', 'left'].map((name) => Number(line[name] ?? 0))
    const held = Number(line['records'] ?? line['size'])
    line['twice'] = Math.max(
      0,
      others.reduce((rest, count) => rest - count, held),
    )
  }
}

/** A record that the response held is nowhere: with its counts made to fit, the service could have answered so. */
export const miscounted = 'a record of a window is missing in it and in the tables'

export const mutants: Record<string, Mutant> = {
  [miscounted]: onWindow((exported, place, line) => {
    const from = rowsBefore(exported, place)
    const taken = exported.rows.slice(from + 1, from + take(line))
    // Without its oldest record, a window would claim another frontier.
    if (taken.length === 0) return false
    exported.rows.splice(from, 1)
    Object.assign(line, { taken: taken.length, keys: sumOf(taken.map(keysOf)) })
    return true
  }),
  'a record that a window held is missing, as if it had been known': onWindow((exported, place, line) => {
    const { rows } = exported
    const from = rowsBefore(exported, place)
    const taken = rows.slice(from + 1, from + take(line))
    const frontier = rows[from - 1]?.created
    const known = Number(line['known'] ?? 0) + 1
    // Where as many have left the list, those could have been met again.
    const tied = rows.slice(0, from).filter(({ created }) => created === frontier).length
    if (taken.length === 0 || known <= tied) return false
    rows.splice(from, 1)
    Object.assign(line, { known, taken: taken.length, keys: sumOf(taken.map(keysOf)) })
    return true
  }),
  'the statuses were looked at before the last range was read': (exported) => {
    const { lines, facts } = exported
    const ranges = lines.filter((line) => 'range' in line)
    if (ranges.length < 2) return false
    for (const range of ranges) range['statuses'] = ['active']
    exported.facts = { ...facts, statusCheck: 'clear' }
    lines.splice(lines.indexOf(ranges.at(-1)!), 0, { looked: ['active'], hidden: false })
    return true
  },
  'a sum is higher by 0.01': onTotals(({ columns }) => {
    columns[amounts]!.sum = new Big(columns[amounts]!.sum).plus('0.01').toFixed(2)
  }),
  'a sum of the rows below is lower by 0.01': onTotals(({ columns }) => {
    const lines = columns['customer_contacts.amount']!
    lines.sum = new Big(lines.sum).minus('0.01').toFixed(2)
  }),
  'the number of empty values is another': onTotals(({ columns }) => {
    columns[amounts]!.empty++
  }),
  'an empty value is said to be unreadable': onTotals(({ columns }) => {
    columns[amounts]!.empty--
    columns[amounts]!.unreadable++
  }),
  'two currencies share their sum otherwise': onTotals(({ columns }) => {
    const { byCurrency } = columns[amounts]!
    for (const [currency, by] of [
      ['CLP', '1'],
      ['USD', '-1'],
    ] as const)
      byCurrency![currency] = new Big(byCurrency![currency] ?? '0').plus(by).toFixed()
  }),
  'a value is not a number': (exported) => {
    exported.amount = 'many'
    return exported.rows.some(({ id }) => amountOf(id) === '')
  },
  'a list is said to be documents by id, of which some are missing': (exported) => {
    exported.forge = (manifest) => (manifest.mode = 'byId')
    return exported.rows.pop() !== undefined
  },
  'the totals lack a column': onTotals(({ columns }) => {
    delete columns['customer_contacts.amount']
  }),
  'the oldest record is older': onTotals(({ created }) => {
    created!.oldest = moved(created!.oldest, -1)
  }),
  'a record is said to be of another month': onTotals(({ created }) => {
    const [month = ''] = Object.keys(created!.months!)
    created!.months![month]!--
    created!.months!['2019-01'] = 1
  }),
  'the months of the records are left out': onTotals(({ created }) => {
    delete created!.months
  }),
  'a window is dropped': onWindow((exported, place) => {
    exported.lines.splice(place, 1)
    exported.windows--
  }),
  'a window is dropped with its rows': onWindow((exported, place, line) => {
    if (isCoveredByNext(exported, place)) return false
    exported.rows.splice(rowsBefore(exported, place), take(line))
    exported.lines.splice(place, 1)
    exported.windows--
    return true
  }),
  'two windows are swapped': onWindow((exported, place) => {
    if (nextTo(exported, place) === undefined) return false
    exported.lines.splice(place, 2, exported.lines[place + 1]!, exported.lines[place]!)
    return true
  }),
  'a window is there twice': onWindow((exported, place, line) => {
    exported.lines.splice(place, 0, line)
    exported.windows++
  }),
  'a window took a record less, the next one more': onWindow((exported, place, line) => {
    const next = nextTo(exported, place)
    const from = rowsBefore(exported, place)
    const [last, before] = [exported.rows[from + take(line) - 1], exported.rows[from + take(line) - 2]]
    // Of records of one time, either window may have taken any.
    if (next === undefined || last === undefined || last.created === before?.created) return false
    const keys = exported.rows.slice(from, from + take(line) + take(next)).map(keysOf)
    const less = take(line) - 1
    Object.assign(line, { taken: less, keys: sumOf(keys.slice(0, less)) })
    Object.assign(next, { taken: take(next) + 1, keys: sumOf(keys.slice(less)) })
    return true
  }),
  'the oldest record of a window is older': onWindow((exported, place, line) => {
    if (nextTo(exported, place) === undefined) return false
    line['oldest'] = moved(line['oldest'], -1)
    return true
  }),
  'the oldest record of a window is newer': onWindow((_exported, _place, line) => {
    line['oldest'] = moved(line['oldest'], 1)
  }),
  'a page that another follows is short': onWindow((_exported, _place, line) => {
    if (line['last'] === true) return false
    line['records'] = Number(line['records'] ?? line['size']) - 1
    return true
  }),
  'a page is short by its own count': onWindow((_exported, _place, line) => {
    if (line['records'] === undefined) return false
    line['count'] = Number(line['page']) * Number(line['size'])
    return true
  }),
  'the response of a window is older than the read': onWindow((_exported, _place, line) => {
    line['date'] = moved('2027-01-15T08:00:00Z', -1)
  }),
  'the end of a range is missing': (exported, random) => {
    const { lines } = exported
    const isLast = (place: number) => {
      const next = lines[place + 1]
      return next === undefined || 'range' in next
    }
    const place = pick(
      windowsOf(exported).filter((one) => isLast(one)),
      random,
    )
    if (place === undefined) return false
    exported.rows.splice(rowsBefore(exported, place), take(lines[place]))
    lines.splice(place, 1)
    exported.windows--
    return true
  },
  'the last range is missing, as if only changes were asked for': (exported) => {
    const { rows, lines } = exported
    const last = lines.findLastIndex((line) => 'range' in line)
    const { upTo } = lines[last]!['range'] as { upTo: string | null }
    if (upTo === null) return false
    exported.forge = (manifest) => (manifest.changedSince = toTimestamp(toInstant(upTo)! + 1))
    rows.splice(rowsBefore(exported, last))
    exported.windows -= lines.splice(last).filter((line) => typeof line['newest'] === 'string').length
    return true
  },
  'the bound of a range is lower': ({ lines }, random) => {
    const ranges = lines.flatMap((line) => (line['range'] as { downTo: string | null } | undefined) ?? [])
    const range = pick(
      ranges.filter(({ downTo }) => downTo !== null),
      random,
    )
    if (range === undefined) return false
    range.downTo = moved(range.downTo, -1)
    return true
  },
  'another id': onRow((rows, place) => {
    rows[place] = { ...rows[place]!, id: `x${rows[place]!.id}` }
  }),
  'a row is missing': onRow((rows, place) => {
    rows.splice(place, 1)
  }),
  'a row is there twice': onRow((rows, place) => {
    rows.splice(place, 0, rows[place]!)
  }),
  'a row is older': onRow((rows, place) => {
    rows[place] = { ...rows[place]!, created: moved(rows[place]!.created, -10) }
  }),
  'a row is newer': onRow((rows, place) => {
    rows[place] = { ...rows[place]!, created: moved(rows[place]!.created, 10) }
  }),
  'a row that nobody read': ({ rows }) => {
    rows.push({ id: 'nobody', created: rows.at(-1)?.created ?? '2026-01-01T00:00:00Z', contacts: [] })
    return true
  },
  'a row of a record in another table is missing': ({ rows }, random) =>
    pick(
      rows.filter(({ contacts }) => contacts.length > 0),
      random,
    )?.contacts.pop() !== undefined,
  'a record has one row more in another table': onRow((rows, place) => {
    const { contacts } = rows[place]!
    contacts.push(`${contacts.length + 1}`)
  }),
  'a row in another table belongs to another record': ({ rows }, random) => {
    const from = pick(
      rows.filter(({ contacts }) => contacts.length === 2),
      random,
    )
    const to = rows.find(({ contacts }) => contacts.length === 1)
    if (from === undefined || to === undefined) return false
    to.contacts.push(from.contacts.pop()!)
    return true
  },
  'a row in another table belongs to no record': (exported) => {
    exported.orphans = ['1']
    return true
  },
  'the table names its columns otherwise': (exported) => {
    exported.header = 'id,created,amount,currency'
    return true
  },
  'one row more is counted in another table than it has': (exported) => {
    exported.forge = ({ tables }) => tables[1]!.rows++
    return true
  },
  'complete through a later time': (exported) => {
    exported.completeThrough = moved(exported.completeThrough, 1)
    return true
  },
  'complete through a later time, by a lag below zero': (exported) => {
    exported.completeThrough = moved(exported.completeThrough, 1)
    for (const line of exported.lines) if ('range' in line) line['lag'] = -40_000_000_000
    return true
  },
  'a response that is older than the read, as if nobody knew the clock': onWindow(
    ({ lines }, _place, line) => {
      line['date'] = moved('2027-01-15T08:00:00Z', -1)
      for (const one of lines) if ('range' in one) one['local'] = true
    },
  ),
  'proven although there are reasons why it is not': ({ reasons }) => {
    reasons.push('the service ignores the filter status')
    return true
  },
  'a window took more records than it held': onWindow((exported, place, line) => {
    const from = rowsBefore(exported, place)
    const record = exported.rows[from]!
    const invented = Array.from({ length: 101 }, (_, at) => ({ ...record, id: `invented${at}` }))
    exported.rows.splice(from, 0, ...invented)
    const taken = exported.rows.slice(from, from + 101 + take(line))
    Object.assign(line, { taken: taken.length, keys: sumOf(taken.map(keysOf)) })
  }),
  'a window took a record more than the table has, and the next one gave it back': (exported) => {
    const { lines } = exported
    const place = lines.findLastIndex((line) => typeof line['newest'] === 'string')
    const line = lines[place]
    if (line === undefined || line['page'] !== 1 || line['descending'] === true) return false
    const size = Number(line['records'] ?? line['size'])
    if (take(line) >= size) return false
    lines[place] = { ...line, page: 2, size, records: size, count: 0, taken: take(line) + 1 }
    lines.splice(place + 1, 0, { ...line, taken: -1, keys: sumOf([]) })
    exported.windows++
    return true
  },
  'proven although the chain broke': ({ lines }) => {
    lines.push({ broken: 'a page was lost' })
    return true
  },
  'a record is missing, as if it had been rejected': onWindow((exported, place, line) => {
    const { rows } = exported
    const from = rowsBefore(exported, place)
    rows.splice(from, 1)
    const taken = rows.slice(from, from + take(line) - 1)
    Object.assign(line, { taken: taken.length, left: 1, keys: sumOf(taken.map(keysOf)) })
    exported.forge = ({ rejected }) => (rejected.rows = 1)
  }),
  'one place where there should be three': onSweep((line) => {
    line['places'] = (line['places'] as number[]).slice(0, 1)
  }),
  'another number of places between two sweeps': onSweep((line) => {
    line['places'] = (line['places'] as number[]).map((places, at) => places + (at === 1 ? 1 : 0))
  }),
  'sweeps that showed different records': onSweep((line) => {
    line['shown'] = [sumOf([]), (line['shown'] as string[])[1]]
  }),
  'sweeps that showed fewer records than places': onSweep((line) => {
    line['places'] = (line['places'] as number[]).map((places) => places + 1)
  }),
  'a place between two sweeps without a record, as if one had no id': onSweep((line) => {
    line['places'] = (line['places'] as number[]).map((places) => places + 1)
    line['nameless'] = 1
  }),
  'sweeps at the bound of a range that showed a record without a row': ({ lines, rows }) => {
    const place = lines.findIndex(({ range }) => (range as { upTo: string | null } | undefined)?.upTo)
    const { upTo } = (lines[place]?.['range'] ?? {}) as { upTo?: string }
    const isKnown = lines.some((line) => 'left' in line) || rows.some(({ created }) => created === upTo)
    if (upTo === undefined || isKnown) return false
    const shown = sumOf(['x'])
    lines.splice(place + 1, 0, { swept: upTo, places: [1, 1, 1], shown: [shown, shown], gone: [] })
    return true
  },
  'a swept record is missing, as if it had no row': (exported) => leaveSwept(exported) !== undefined,
  'a swept record is missing, as if another line had left a record less than none': (exported) => {
    const line = leaveSwept(exported)
    if (line === undefined) return false
    exported.lines.find((one) => one !== line)!['left'] = -1
    return true
  },
  'a swept record that is said to be gone': (exported) => {
    const place = exported.lines.findIndex((line) => 'swept' in line)
    if (place === -1) return false
    const line = exported.lines[place]!
    const { id } = exported.rows[rowsBefore(exported, place) - 1]!
    if ((line['gone'] as string[]).includes(id)) return false
    line['gone'] = [...(line['gone'] as string[]), id]
    return true
  },
}
