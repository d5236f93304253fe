import { expect, it } from 'vitest'
import type { Destination } from '../../../core/destinations/destination.ts'
import { NotAdmittedError, WarehouseAwayError } from '../../../core/destinations/errors.ts'
import { begunAtOf, type ExportPlan, refuseTargets, refuseUnpublishable } from '../../../core/exports/plan.ts'

it('a run to DuckDB is refused at its start where DuckDB could not write below the data folder', () => {
  const destinations = new Map([['duckdb', {}]])
  const shared = { isShared: false }
  const start = (dataDir: string) => () =>
    refuseTargets({ destinations, dataDir, shared }, { to: ['duckdb'] })
  expect(start('/srv/a?b')).toThrow('DuckDB does not write files below /srv/a?b, because of the "?". Set')
  expect(start(`/srv/a #1 %3F 'ñ' [*]`)).not.toThrow()
})

it('a run is refused at its start while a warehouse has a read from the future, and not if it does not answer', async () => {
  const begin = (error?: Error) =>
    refuseUnpublishable({
      plan: {
        exclude: [],
        hash: [],
        identity: { mode: 'live' },
        resources: ['plans'],
        to: ['csv', 'postgres'],
      } as never,
      hashKey: '',
      state: { now: () => 7 },
      destinations: new Map([
        ['csv', {}],
        [
          'postgres',
          {
            checkBeforeRead: async (_, { reads, now }) => {
              expect([reads.map(({ resource }) => resource), now]).toEqual([['plans'], 7])
              if (error !== undefined) throw error
            },
          } satisfies Pick<Destination, 'checkBeforeRead'>,
        ],
      ]),
    })
  await expect(begin(new NotAdmittedError('from the future'))).rejects.toThrow('from the future')
  await begin(new WarehouseAwayError('away'))
  await begin()
})

it('a run of a schedule begins no earlier than its slot, where the host that started it has a slower clock', () => {
  const begunAt = (startedAt: string, scheduledFor?: string) =>
    begunAtOf({ startedAt, scheduledFor } as ExportPlan)
  expect(begunAt('2026-11-20T01:59:59.900Z', '2026-11-20T02:00:00Z')).toBe('2026-11-20T02:00:00.000Z')
  expect(begunAt('2026-11-20T02:00:03Z', '2026-11-20T02:00:00Z')).toBe('2026-11-20T02:00:03.000Z')
  expect(begunAt('2026-11-20T02:00:03Z')).toBe('2026-11-20T02:00:03.000Z')
})
