import { expect, inject, onTestFinished, test } from 'vitest'
import { playFleet } from '../../chaos/fleet/play-fleet.ts'
import { stopPostgres } from '../../chaos/fleet/strikes.ts'
import { Tally } from '../../chaos/tally.ts'
import { until } from '../../system/export/world.ts'
import { timesOf } from '../../system/import/world.ts'
import { resumesDone } from '../../system/recovery/world.ts'
import { startGateway } from './gateway.ts'

// The long form is `npm run chaos -- --only fleet`.

test('while PostgreSQL is killed and a worker is frozen right after a claim, an import and a recovery by two workers do each change once', async () => {
  const tally = new Tally()
  const gateway = await startGateway()
  onTestFinished(() => gateway.close())
  const changes = { retentions: 40, addons: 0, subscriptions: 3 }
  const found = await playFleet({
    seed: 20261122,
    tally,
    bucket: { endpoint: gateway.endpoint },
    temporal: { address: inject('temporalAddress'), binary: inject('temporalBinary') },
    workers: 2,
    // No addons, so that the worker that is frozen sends what can be looked up, and sent again.
    changes,
    requestsPerSecond: 12,
    // Never closed: what a frozen worker has claimed must not leave late for another reason.
    idleMs: 120_000,
    strike: async (stage) => {
      const { fleet, world, runs, isOver } = stage
      const retentions = runs.find(({ job }) => job === 'import')?.handle
      await Promise.all([stopPostgres(stage, 1_000), retentions?.signal('pause')])
      // The claim at which a worker freezes is one of the import: a late resume would change nothing.
      await until(() => new Set(resumesDone(world)).size === changes.subscriptions || isOver())
      const [wake] = await Promise.all([
        fleet.freeze({ point: 'afterClaim', isDeaf: true, withinMs: 60_000 }),
        retentions?.signal('unpause'),
      ])
      expect(wake, 'no worker was frozen').toBeDefined()
      const sent = () => timesOf(world, 'retentions', changes.retentions).every((times) => times > 0)
      await until(() => sent() || isOver())
      // Time for what it may have claimed to leave, while it does not hear that it was given up.
      await wake?.()
    },
  })
  console.log(tally.lines().join('\n'))
  expect(found).toEqual([])
})
