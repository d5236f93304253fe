import { createHash } from 'node:crypto'
import { type Kysely, type Transaction, sql } from 'kysely'

/**
 * Addons and products are held by a hash of their fields, which was another for `10.00` and `10`, for the two ways to
 * write an accent, and for a default that is spelled out. Every change gets the key that the same row has from now
 * on. The rule is written here as it was then, and stays as it is. It may run twice.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    for (const [kind, rules] of Object.entries(rulesOf)) await rekey({ db: transaction, kind, rules })
  })
}

interface Rules {
  numbers: readonly string[]
  defaults: Readonly<Record<string, string>>
}

const rulesOf: Readonly<Record<string, Rules>> = {
  'create-addon': {
    numbers: ['amount', 'duration_times'],
    defaults: { apply_scheme: 'one_time', status: 'active' },
  },
  'create-product': { numbers: [], defaults: { status: 'active' } },
}

interface Row {
  id: number
  workspace: string
  mode: string
  generation: number
  holds_key: number
  state: string
  body: string
}

/** What holds one of the new keys so far. */
interface Holders {
  generations: number[]
  open: boolean
}

const rowsAtOnce = 5_000

async function rekey({ db, kind, rules }: { db: Transaction<unknown>; kind: string; rules: Rules }) {
  const holders = new Map<string, Holders>()
  for (let last = 0; ;) {
    const { rows } =
      await sql<Row>`select id, workspace, mode, generation, holds_key, state, body from changes
      where kind = ${kind} and id > ${last} order by id limit ${rowsAtOnce}`.execute(db)
    for (const row of rows) {
      const key = keyOf({ body: row.body, rules })
      const { generation, holds } = place({ row, key, holders })
      await sql`update changes set key = ${key}, generation = ${generation}, holds_key = ${holds}
        where id = ${row.id}`.execute(db)
    }
    if (rows.length < rowsAtOnce) return
    last = rows.at(-1)!.id
  }
}

/** Two rows that had a key each may have one now: both stay, the later as if it had been asked for once more. */
function place({ row, key, holders }: { row: Row; key: string; holders: Map<string, Holders> }) {
  const { generation, holds_key: holds, state } = row
  if (holds === 0 || state === 'rejected' || state === 'dropped') return { generation, holds }
  const space = JSON.stringify([row.workspace, row.mode, key])
  const taken = holders.get(space) ?? { generations: [], open: false }
  holders.set(space, taken)
  const isOpen = state !== 'done'
  // Only one that is not done may hold a key.
  if (isOpen && taken.open) return { generation, holds: 0 }
  taken.open ||= isOpen
  const free = taken.generations.includes(generation) ? Math.max(...taken.generations) + 1 : generation
  taken.generations.push(free)
  return { generation: free, holds }
}

function keyOf({ body, rules }: { body: string; rules: Rules }): string {
  const digitForDigit = (_name: string, value: unknown, { source }: { source?: string }) =>
    typeof value === 'number' ? source : value
  const values = JSON.parse(body, digitForDigit) as Record<string, unknown>
  const fields = Object.entries(values).flatMap(([name, value]) => {
    if (value === null) return []
    const text = (typeof value === 'string' ? value : JSON.stringify(value)).normalize('NFC')
    if (text === rules.defaults[name]) return []
    return [[name, rules.numbers.includes(name) ? canonicalNumber(text) : text] as const]
  })
  const sorted = JSON.stringify(fields.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(sorted).digest('hex').slice(0, 32)
}

/** `10.00` and `1e1` are both `1e1`. */
function canonicalNumber(text: string): string {
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,6}))?$/i.exec(text.trim())
  const [, sign, whole = '', fraction = '', exponent = '0'] = parts ?? []
  if (whole === '' && fraction === '') return text
  const significant = (whole + fraction).replace(/^0+/, '')
  const digits = significant.replace(/0+$/, '')
  const shift = Number(exponent) - fraction.length + (significant.length - digits.length)
  if (Math.abs(shift) > 10_000) return text
  return digits === '' ? '0e0' : `${sign === '-' ? '-' : ''}${digits}e${shift}`
}
