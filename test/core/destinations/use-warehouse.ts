import { afterEach, beforeEach } from 'vitest'
import type { Publication, Warehouse } from '../../../core/destinations/destination.ts'
import type { ReadFacts } from '../../../core/destinations/manifest.ts'
import type { SeenRow } from './contract.ts'
import { createWorkplace, facts, type Workplace } from './publication.ts'

/** A warehouse under test. */
export interface WarehouseHarness {
  destination: Warehouse
  /** Where its tables lie. */
  schema: string
  /**
   * Carries out a test's first publication, or brings the warehouse back as the same publication, with this key, left it
   * in an earlier test. Without it, each is carried out: a new table costs DuckDB 0.2 s of the processor.
   */
  once?(key: string, publish: () => Promise<unknown>): Promise<unknown>
  /** Asks or changes something from outside, as a person would; undefined where there is no such table. */
  ask(sql: string): Promise<SeenRow[] | undefined>
  close(): Promise<void>
}

export const day = (date: number) => `2026-03-${String(date).padStart(2, '0')}T03:00:00.000Z`

/** A read that began on a day of March and is complete for all that was created before. */
export const readOn = (date: number, more: Partial<ReadFacts> = {}): ReadFacts => ({
  ...facts,
  startedAt: day(date),
  finishedAt: day(date),
  completeThrough: day(date),
  newestUpdated: day(date),
  ...more,
})

export interface Customer {
  id: string
  name?: string
  created?: string
  updated?: string
  contacts?: { id: string }[]
}

export const created = '2025-01-01T00:00:00.000000-03:00'

/** Opens a warehouse of its own for each test of the describe() that calls this, and closes it after. */
export function useWarehouse(open: (workplace: Workplace) => Promise<WarehouseHarness>) {
  let place: Workplace
  let opened: WarehouseHarness
  beforeEach(async () => {
    place = await createWorkplace()
    opened = await open(place)
  })
  afterEach(async () => {
    await opened.close()
    await place.close()
  })
  /** Those of the test that runs. */
  const workplace: Pick<Workplace, 'toPublication'> = {
    toPublication: (...options) => place.toPublication(...options),
  }
  const harness: Pick<WarehouseHarness, 'destination' | 'schema' | 'ask'> = {
    get destination() {
      return opened.destination
    },
    get schema() {
      return opened.schema
    },
    ask: (sql) => opened.ask(sql),
  }

  const toPublication = (run: string, customers: readonly Customer[], more: Partial<Publication> = {}) =>
    workplace.toPublication(
      'customers',
      [customers.map((customer) => JSON.stringify({ created, updated: created, ...customer }))],
      { run, ...more },
    )
  const publish = async (run: string, customers: readonly Customer[], more: Partial<Publication> = {}) =>
    harness.destination.publish(await toPublication(run, customers, more))
  /** Publishes one plan, as another resource than that of the test. */
  const publishPlan = async (run: string, more: Partial<Publication> = {}, id = 'p') =>
    harness.destination.publish(
      await workplace.toPublication('plans', [[`{"id":"${id}"}`]], { run, ...more }),
    )
  /** See `WarehouseHarness.once`. */
  const once = (key: string, carryOut: () => Promise<unknown>) =>
    opened.once === undefined ? carryOut() : opened.once(key, carryOut)
  /** The first publication of a test that is about the next one: read on the first day. */
  const publishFirst = (customers: readonly Customer[]) =>
    once(JSON.stringify(customers), () => publish('first', customers, { facts: readOn(1) }))
  const ask = async (sql: string) => (await harness.ask(sql)) ?? []
  const drop = async (...tables: readonly string[]) => {
    for (const table of tables) {
      await ask(`drop view ${harness.schema}.live_${table}`)
      await ask(`drop table ${harness.schema}.${table}`)
    }
  }
  const customers = () =>
    ask(`select id, name, _run_id as run, case when _deleted_at is null then 'there' else 'gone' end as state
      from ${harness.schema}.customers order by id`)
  const states = async () => (await customers()).map(({ id, state }) => `${id} ${state}`)
  const contacts = async () =>
    (
      await ask(`select customer_id, position, id from ${harness.schema}.customer_contacts
      order by customer_id, position`)
    ).map((row) => `${row['customer_id']}.${row['position']} ${row['id']}`)
  const many = (count: number): Customer[] =>
    Array.from({ length: count }, (_, at) => ({ id: `cus_${String(at).padStart(3, '0')}` }))

  return {
    harness,
    workplace,
    toPublication,
    publish,
    publishPlan,
    once,
    publishFirst,
    ask,
    drop,
    customers,
    states,
    contacts,
    many,
  }
}
