import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { findBinary } from '../../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../../scripts/dev-server/start-dev-server.ts'
import { playFaults } from '../acceptance/bucket/play-faults.ts'
import { startFaultProxy } from '../acceptance/bucket/fault-proxy.ts'
import { startGateway } from '../acceptance/bucket/gateway.ts'
import buildGateway, { versitygw } from '../acceptance/bucket/versitygw.ts'
import { type Bucket, playFleet } from './fleet/play-fleet.ts'
import { rounds } from './fleet/rounds.ts'
import { strikeAtRandom } from './fleet/strikes.ts'
import { type Job, jobs, playHistory } from './histories/history.ts'
import { openRunner } from './histories/runner.ts'
import { playWithTemporal } from './histories/temporal.ts'
import { Random } from './random.ts'
import { playRange } from './ranges.ts'
import type { Tally } from './tally.ts'

export const partNames = ['histories', 'temporal', 'fleet', 'bucket', 'ranges'] as const
export type PartName = (typeof partNames)[number]

/** One way in which things go wrong, played round after round. */
interface Part {
  about: string
  /** Its share of the minutes, beside those of the others. */
  share: number
  /** How many rounds are played at once. */
  atOnce: number
  open: (options: { tally: Tally; chosenJobs: readonly Job[] }) => Promise<OpenPart>
}

export interface OpenPart extends AsyncDisposable {
  /** Plays a round that the seed decides; gives what was found wrong. */
  play: (seed: number) => Promise<string[]>
}

/** A program is missing: the part is left out. */
export class MissingProgram extends Error {
  override readonly name = 'MissingProgram'
}

const withoutEnd = (play: OpenPart['play']): OpenPart => ({ play, [Symbol.asyncDispose]: async () => {} })

export const parts: Record<PartName, Part> = {
  histories: {
    about:
      'imports, recoveries and exports on one Temporal server: kills, freezes, pauses, stops, resets, restores, lost and late replies, lists that drift (after a change to staging, sending, lookups, restoring, reading, publishing)',
    share: 3,
    // They mostly wait.
    atOnce: 16,
    open: async ({ tally, chosenJobs }) => {
      const temporal = await startTemporal()
      const runner = await openRunner(temporal)
      return {
        play: async (seed) => {
          const job = new Random(seed).pick(chosenJobs.length === 0 ? jobs : chosenJobs)
          tally.add(`histories: ${job}`)
          return await playHistory({ runner, seed, job, tally })
        },
        [Symbol.asyncDispose]: async () => {
          await runner[Symbol.asyncDispose]()
          await temporal.stop()
        },
      }
    },
  },
  temporal: {
    about:
      'imports by command: command and Temporal killed, the ledger and Temporal restored (after the same changes)',
    share: 1,
    atOnce: 1,
    open: async ({ tally }) => {
      // Downloaded once, before commands need it.
      await findTemporal()
      return withoutEnd((seed) => playWithTemporal({ seed, tally }))
    },
  },
  fleet: {
    about:
      'imports and a recovery by several workers: frozen, killed with their folders (every other round with a bucket that fails), PostgreSQL killed, the service away; eight seeds in a row play all (needs Go; after a change to core/state/, core/changes/send/)',
    share: 6,
    atOnce: 1,
    open: openFleetRounds,
  },
  bucket: {
    about:
      'exports to an object store that fails, loses answers and is away (needs Go; after a change to core/storage/, core/destinations/files/)',
    share: 1,
    atOnce: 1,
    open: openBucketRounds,
  },
  ranges: {
    about:
      'lists that drift, read in ranges with any bounds, with crashes; a round is one read (after a change to core/reading/)',
    share: 1,
    atOnce: 1,
    open: async ({ tally }) => withoutEnd((seed) => playRange({ seed, tally })),
  },
}

const findTemporal = () =>
  findBinary({
    env: process.env,
    startTask: (title) => {
      console.log(title)
      return { end: () => undefined }
    },
  })

const changes = { retentions: 600, addons: 70, subscriptions: 110 }

/** Eight seeds in a row play each kind of round, with a bucket that fails and with one that does not. */
async function openFleetRounds({ tally }: { tally: Tally }): Promise<OpenPart> {
  await needGateway()
  const { stop, ...temporal } = await startTemporal()
  const gateway = await startGateway()
  const proxy = await startFaultProxy(gateway.endpoint)
  return {
    play: async (seed) => {
      const random = new Random(seed)
      const { name, plan, ...round } = rounds[Math.floor(seed / 2) % rounds.length]!
      tally.add(`fleet: rounds: ${name}`)
      const bucket = seed % 2 === 0 ? failing(proxy, new Random(seed)) : { endpoint: gateway.endpoint }
      return await playFleet({
        ...round,
        bucket,
        seed,
        tally,
        temporal,
        workers: 5,
        changes,
        requestsPerSecond: 10,
        strike: (stage) => strikeAtRandom(stage, plan, random),
      })
    },
    async [Symbol.asyncDispose]() {
      await stop()
      for (const [name, number] of proxy.counts) tally.add(`fleet: answers of the bucket: ${name}`, number)
      await proxy.close()
      await gateway.close()
    },
  }
}

async function startTemporal() {
  const binary = await findTemporal()
  const dataDir = mkdtempSync(join(tmpdir(), 'chaos-temporal-'))
  const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary) })
  const stop = async () => {
    await server.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { address: server.address, binary, stop }
}

/** A bucket of which 5 % of the answers are 503, and 1 % are lost after they took effect. */
function failing(proxy: Awaited<ReturnType<typeof startFaultProxy>>, random: Random): Bucket {
  let isAway = false
  proxy.setFaults(() => {
    if (isAway) return 'away'
    return random.happens(0.01) ? 'lost' : random.happens(0.05) ? 'unavailable' : undefined
  })
  return {
    endpoint: proxy.endpoint,
    async lose(ms) {
      isAway = true
      await wait(ms)
      isAway = false
    },
  }
}

async function needGateway(): Promise<void> {
  await buildGateway()
  if (!existsSync(versitygw()))
    throw new MissingProgram('the object store is built with Go, which is not installed')
}

async function openBucketRounds({ tally }: { tally: Tally }): Promise<OpenPart> {
  await needGateway()
  return withoutEnd(async (seed) => {
    const format = seed % 2 === 0 ? 'csv' : 'parquet'
    const { problems, faults, ...played } = await playFaults({ seed, runs: 60, awayMs: 10_000, format })
    for (const [name, number] of Object.entries(faults)) tally.add(`bucket: answers ${name}`, number)
    for (const name of ['runs', 'attempts', 'repeated', 'moves'] as const)
      tally.add(`bucket: ${name}`, played[name])
    return problems.map((problem) => `bucket, seed ${seed}: ${problem}`)
  })
}
