import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { Chance } from '../../../sandbox/data/random.ts'
import { askDuckDb } from '../../core/destinations/duckdb-file.ts'
import { createWorkplace, facts } from '../../core/destinations/publication.ts'
import { askPostgres, startPostgres, type Postgres } from './postgres-server.ts'

/** A record of the service; times are minutes. */
interface Customer {
  id: string
  version: number
  created: number
  updated: number
  contacts: string[]
}

/** The row that a warehouse must hold for a record. */
interface Row {
  customer: Customer
  run: string
  seen: number
  isGone: boolean
}

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

const at = (minute: number) => new Date(Date.UTC(2026, 2, 1) + minute * 60_000).toISOString()

const toJson = ({ id, version, created, updated, contacts }: Customer) =>
  JSON.stringify({
    id,
    name: `v${version}`,
    created: at(created),
    updated: at(updated),
    contacts: contacts.map((contact) => ({ id: contact })),
  })

const byId = (one: Row, other: Row) => (one.customer.id < other.customer.id ? -1 : 1)

/** A service that changes at random, and what a warehouse of its exports has to hold. */
function createModel(seed: number) {
  const chance = new Chance(seed)
  const service = new Map<string, Customer>()
  const rows = new Map<string, Row>()
  let minute = 0
  function change() {
    minute += 1
    const kind = chance.fraction()
    const ids = [...service.keys()]
    const contacts = ['k1', 'k2', 'k3'].slice(chance.below(4))
    if (kind < 0.45 || ids.length < 3) {
      const id = `c${String(minute).padStart(4, '0')}`
      service.set(id, { id, version: minute, created: minute, updated: minute, contacts })
    } else if (kind < 0.6) service.delete(chance.pick(ids))
    else {
      const old = service.get(chance.pick(ids))!
      service.set(old.id, { ...old, version: minute, updated: minute, contacts })
    }
  }
  /** A version of a record from before the stored one, as a replica of the service that lags shows it. */
  const toStale = (customer: Customer): Customer =>
    rows.has(customer.id) && chance.happens(0.3)
      ? { ...customer, version: 0, updated: customer.created, contacts: ['old'] }
      : customer
  return {
    chance,
    rows,
    changeAndWait() {
      for (let changes = 1 + chance.below(4); changes > 0; changes--) change()
      minute += 2
      return minute
    },
    read({ since, isWhole, isStale }: { since: number; isWhole: boolean; isStale: boolean }): Customer[] {
      const read = [...service.values()].filter(
        ({ updated }) => updated >= since && (isWhole || chance.happens(0.8)),
      )
      return isStale ? read.map(toStale) : read
    },
    merge(read: readonly Customer[], run: string, start: number): void {
      for (const customer of read) {
        const row = rows.get(customer.id)
        const isStale = row !== undefined && customer.updated < row.customer.updated
        rows.set(
          customer.id,
          isStale ? { ...row, seen: start, isGone: false } : { customer, run, seen: start, isGone: false },
        )
      }
    },
    absent: (start: number) =>
      [...rows.values()].filter(
        ({ isGone, seen, customer }) => !isGone && seen < start && customer.created < start,
      ),
    live: () => [...rows.values()].filter(({ isGone }) => !isGone).length,
    expected() {
      const sorted = [...rows.values()].toSorted(byId)
      return {
        customers: sorted.map(({ customer, run, isGone }) => ({
          id: customer.id,
          name: `v${customer.version}`,
          gone: `${isGone}`,
          run,
        })),
        contacts: sorted.flatMap(({ customer, run, isGone }) =>
          customer.contacts.map((id) => ({ customer: customer.id, id, gone: `${isGone}`, run })),
        ),
      }
    },
  }
}

const seed = 1

test(
  `DuckDB and PostgreSQL hold what a model of random exports says (seed ${seed})`,
  { tags: ['long'], timeout: 120_000 },
  async () => {
    const place = await createWorkplace()
    const url = await postgres.createDatabase()
    const file = join(place.folder, 'warehouse.duckdb')
    const destinations = [
      createDuckDbDestination({ folder: place.folder }),
      createPostgresDestination({ url }),
    ]
    const model = createModel(seed)
    const { chance } = model
    /** The rows of a query, which has to give the same in both. */
    async function ask(query: string) {
      const inDuckDb = await askDuckDb(file, query)
      expect(await askPostgres(url, query.replace('from ', 'from billing.'))).toEqual(inDuckDb)
      return inDuckDb
    }
    async function publish(publication: Publication) {
      const [one, other] = [
        await destinations[0]!.publish(publication),
        await destinations[1]!.publish(publication),
      ]
      const settled = { destination: '', publishedAt: '' }
      expect({ ...one.manifest, ...settled }).toEqual({ ...other.manifest, ...settled })
      return one
    }
    async function check() {
      const { customers, contacts } = model.expected()
      const gone = 'cast(_deleted_at is not null as text) as gone, _run_id as run'
      expect(await ask(`select id, name, ${gone} from customers order by id`)).toEqual(customers)
      expect(
        await ask(
          `select customer_id as customer, id, ${gone} from customer_contacts order by customer_id, position`,
        ),
      ).toEqual(contacts)
    }

    const published: { publication: Publication; start: number; heldBack: number }[] = []
    let covered = 0
    for (let step = 0; step < 14; step++) {
      const start = model.changeAndWait()
      const tampered = step > 1 && chance.happens(0.2) ? chance.pick([...model.rows.keys()]) : undefined
      const isWhole = tampered !== undefined || chance.happens(0.8)
      const isFull = tampered !== undefined || covered === 0 || chance.happens(0.6)
      if (tampered !== undefined) {
        const mark = chance.pick([`timestamptz '${at(start)}'`, 'null'])
        const set = `customers set _deleted_at = ${mark} where id = '${tampered}'`
        await askDuckDb(file, `update ${set}`)
        await askPostgres(url, `update billing.${set}`)
        model.rows.get(tampered)!.isGone = mark !== 'null'
      }
      const read = model.read({
        since: isFull ? 0 : covered,
        isWhole,
        isStale: tampered === undefined && chance.happens(0.2),
      })
      const maxDeletes = tampered !== undefined ? 'all' : chance.pick([undefined, 0, 1, 'all'] as const)
      const run = `run-${step}`
      const publication = await place.toPublication('customers', [read.map(toJson)], {
        run,
        mode: isFull ? 'full' : 'incremental',
        ...(maxDeletes !== undefined && { maxDeletes }),
        facts: {
          ...facts,
          startedAt: at(start),
          finishedAt: at(start),
          completeThrough: isWhole ? at(start - 1) : null,
          newestUpdated: at(start - 1),
          ...(!isWhole && { verdict: 'unproven', reasons: ['a page was lost'] }),
          ...(!isFull && { changedSince: at(covered) }),
        },
      })
      const { manifest } = await publish(publication)
      model.merge(read, run, start)
      let heldBack = 0
      if (isFull && isWhole) {
        const absent = model.absent(start)
        const allowed =
          maxDeletes === 'all' ? Infinity : (maxDeletes ?? Math.max(10, Math.floor(model.live() / 10)))
        heldBack = absent.length > allowed ? absent.length : 0
        if (heldBack === 0) for (const row of absent) row.isGone = true
        expect(manifest.deletes).toMatchObject({ marked: absent.length - heldBack, heldBack })
        covered = start - 1
      }
      published.push({ publication, start, heldBack })
      await check()
      if (!chance.happens(0.3)) continue
      // Publishing an earlier run again changes nothing, unless it held deletes back.
      const earlier = chance.pick(published)
      expect(await publish({ ...earlier.publication, maxDeletes: 'all' })).toMatchObject({ fresh: false })
      if (earlier.heldBack > 0) for (const row of model.absent(earlier.start)) row.isGone = true
      earlier.heldBack = 0
      await check()
    }
    const { publication } = published.at(-1)!
    const [one, other] = destinations.map((to) => to.coveredThrough(publication, publication))
    expect(await one).toBe(await other)
    await place.close()
  },
)
