import { copyFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Publication } from '../../../core/destinations/destination.ts'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { WarehouseAwayError } from '../../../core/destinations/errors.ts'
import { toSince } from '../../../core/exports/watermark.ts'
import type { State } from '../../../core/state/open.ts'
import { createPlan } from '../../system/export/plan.ts'
import { clientOf, startSandbox } from '../changes/engine.ts'
import { askDuckDb } from '../destinations/duckdb-file.ts'
import { createWorkplace } from '../destinations/publication.ts'
import { created, type Customer, day, readOn } from '../destinations/use-warehouse.ts'
import { temporaryState } from '../state/temporary-folder.ts'
import { recordRead } from './record-read.ts'

const list: readonly Customer[] = [{ id: 'a' }, { id: 'b', contacts: [{ id: '1' }] }]

/** A DuckDB warehouse, and the state of a worker that exports to it. */
async function start() {
  const place = await createWorkplace()
  onTestFinished(() => place.close())
  const file = join(place.folder, 'warehouse.duckdb')
  const destination = createDuckDbDestination({ folder: place.folder })
  const billing = clientOf(await startSandbox({ counts: { customers: 30 } }))
  const plan = createPlan({ to: ['duckdb'] })
  const mine = await temporaryState()
  const depsOf = (state: State, duckdb: Pick<typeof destination, 'coveredThrough'> = destination) => ({
    state,
    hashKey: '',
    destinations: new Map([['duckdb', { ...destination, ...duckdb }]]),
    billing,
  })

  const toPublication = (on: number, customers: readonly Customer[], more: Partial<Publication> = {}) =>
    place.toPublication(
      'customers',
      [customers.map((customer) => JSON.stringify({ created, updated: created, ...customer }))],
      { run: `run ${on}`, facts: readOn(on), ...more },
    )
  async function publish(publication: Publication, state = mine) {
    const { changedSince } = publication.facts
    const since = changedSince === undefined ? {} : { customers: Date.parse(changedSince) }
    const { manifest } = await destination.publish(publication)
    const of = { plan: { ...plan, since }, resource: 'customers', destination: 'duckdb' } as const
    const read = { ...of, deps: depsOf(state), manifest, hashedWith: undefined }
    const { changesThrough: at } = await recordRead(read)
    return { verdict: manifest.verdict, mark: at === null ? null : new Date(at).toISOString() }
  }
  return {
    file,
    mine,
    toPublication,
    publish,
    full: async (on: number, more?: Partial<Publication>, state?: State) =>
      publish(await toPublication(on, list, more), state),
    changes: async (from: number, on: number, state?: State) => {
      const facts = readOn(on, { changedSince: day(from) })
      const changed = [{ id: 'c', updated: day(from) }]
      return publish(await toPublication(on, changed, { facts, mode: 'incremental' }), state)
    },
    ask: (sql: string) => askDuckDb(file, sql),
    /** Where the next incremental read begins, or why it is of the whole list. */
    next: async ({ state = mine, isAway = false } = {}) => {
      const away = { coveredThrough: () => Promise.reject(new WarehouseAwayError('away')) }
      const deps = depsOf(state, isAway ? away : undefined)
      const { since, whole } = await toSince({ deps, plan, lists: ['customers'], lookbackSeconds: 0 })
      return since.customers === undefined
        ? (whole.customers ?? 'nothing was published')
        : new Date(since.customers).toISOString()
    },
  }
}

const lost = 'duckdb no longer holds what its exports have left there'

type Started = Awaited<ReturnType<typeof start>>

const losses: [what: string, loss: (of: Started) => Promise<unknown>][] = [
  ['was removed', ({ file }) => rm(file)],
  ['was put back to an older backup', ({ file }) => copyFile(`${file}.backup`, file)],
]

test.each(losses)('a warehouse that %s gets the whole list, and no proof before it', async (_, loss) => {
  const started = await start()
  const { full, changes, next, file } = started
  await full(1)
  await copyFile(file, `${file}.backup`)
  await changes(1, 2)
  await loss(started)
  expect(await next()).toBe(lost)
  // A warehouse that does not answer is asked by the publication.
  expect(await next({ isAway: true })).toBe(day(2))
  expect(await changes(2, 3)).toEqual({ verdict: 'unproven', mark: null })
  expect(await next()).toBe(lost)
  expect(await full(4)).toEqual({ verdict: 'proven', mark: day(4) })
  expect(await next()).toBe(day(4))
})

test('two workers with states of their own leave no change out of their warehouse', async () => {
  const { file, mine, full, changes, next } = await start()
  const theirs = await temporaryState()
  await full(1, {}, theirs)
  expect(await next()).toBe('nothing was published')
  await full(2)
  expect(await changes(1, 3, theirs)).toEqual({ verdict: 'proven', mark: day(3) })
  expect(await next()).toBe(day(2))
  await rm(file)
  await full(4, {}, theirs)
  // The other's whole list has all that was there before, too.
  expect(await next({ state: mine })).toBe(day(2))
  expect(await changes(2, 5)).toEqual({ verdict: 'proven', mark: day(5) })
})

test('a state that was put back to an older one begins where it knows that changes were published', async () => {
  const { full, changes, next } = await start()
  const older = await temporaryState()
  const first = await full(1)
  await full(2, {}, older)
  expect(first.mark).toBe(day(1))
  expect(await changes(2, 3)).toMatchObject({ verdict: 'proven', mark: null })
  expect(await next({ state: older })).toBe(day(2))
  expect(await next({ state: await temporaryState() })).toBe('nothing was published')
})

test('a backup is older by the clock of `updated`, whatever the Date of a gateway', async () => {
  const { file, toPublication, publish, next } = await start()
  const ahead = (on: number, more: Partial<Publication['facts']> = {}) => ({
    facts: readOn(on + 2, { newestUpdated: day(on), ...more }),
  })
  await publish(await toPublication(1, list, ahead(1)))
  await copyFile(file, `${file}.backup`)
  const changes = [{ id: 'c', updated: day(2) }]
  const read = { ...ahead(2, { changedSince: day(1) }), mode: 'incremental' } as const
  expect(await publish(await toPublication(2, changes, read))).toEqual({ verdict: 'proven', mark: day(2) })
  expect(await next()).toBe(day(2))
  await copyFile(`${file}.backup`, file)
  expect(await next()).toBe(lost)
})
