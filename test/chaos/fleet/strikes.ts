import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../random.ts'
import { type FreezePoint, freezePoints } from './fleet.ts'
import type { Stage } from './play-fleet.ts'

/** How often each strikes. */
export interface Plan {
  freezes: number
  /** `anywhere`: at any moment. */
  points: readonly (FreezePoint | 'anywhere')[]
  kills: number
  outages: number
  serviceLosses: number
  /** If the bucket can be away. */
  bucketLosses: number
  /** So many workers are frozen at most at a time. */
  mostFrozen: number
}

export const sureFreezePoints = freezePoints.filter((point) => point !== 'afterLook')

/** Strikes as the plan says, in a random order, until all runs have ended. */
export async function strikeAtRandom(stage: Stage, plan: Plan, random: Random): Promise<void> {
  const { fleet, bucket, tally, isOver } = stage
  const left = {
    freeze: plan.freezes,
    kill: plan.kills,
    outage: plan.outages,
    loseService: plan.serviceLosses,
    loseBucket: bucket.lose === undefined ? 0 : plan.bucketLosses,
  }
  const active = new Set<Promise<unknown>>()
  let frozen = 0
  const inBackground = (work: Promise<unknown>) => {
    const one = work.finally(() => active.delete(one))
    active.add(one)
  }
  const freeze = async () => {
    const point = random.pick(plan.points)
    // Longer than the heartbeat, the takeover and both lookups, or shorter than each.
    const ms = random.happens(0.7) ? 13_000 + random.below(5_000) : 200 + random.below(6_000)
    const isDeaf = random.happens(1 / 3)
    const wake =
      point === 'anywhere'
        ? fleet.freezeNow({ pid: random.pick(fleet.pids()), isDeaf })
        : await fleet.freeze({ point, isDeaf })
    if (wake === undefined) {
      left.freeze += 1
      return
    }
    await wait(ms)
    await wake()
    tally.add(`fleet: frozen ${point}`)
    if (isDeaf) tally.add('fleet: frozen, and deaf to Temporal when it woke')
  }
  const strikes: Record<keyof typeof left, () => Promise<unknown>> = {
    freeze: async () => {
      frozen += 1
      inBackground(freeze().finally(() => (frozen -= 1)))
    },
    kill: async () => {
      const killed = await fleet.kill(random.pick(fleet.pids()))
      if (killed === undefined) return
      tally.add('fleet: killed')
      inBackground(killed.replaced)
    },
    outage: async () => {
      await stopPostgres(stage, outageMs(random))
    },
    loseService: async () => {
      await fleet.loseService(random.below(5_000))
      tally.add('fleet: the service away')
    },
    loseBucket: async () => {
      await bucket.lose?.(outageMs(random))
      tally.add('fleet: the bucket away')
    },
  }
  while (!isOver()) {
    const kinds = (Object.keys(left) as (keyof typeof left)[]).filter(
      (kind) => left[kind] > 0 && (kind !== 'freeze' || frozen < plan.mostFrozen) && fleet.pids().length > 1,
    )
    if (kinds.length > 0) {
      const kind = random.pick(kinds)
      left[kind] -= 1
      await strikes[kind]()
    }
    // Time to get on: each failed attempt of a step lengthens the pause before the next one.
    await wait(random.below(3_000))
  }
  await Promise.all(active)
}

/** A third of them last 30 s, longer than the heartbeat and most timeouts. */
const outageMs = (random: Random) => (random.happens(1 / 3) ? 30_000 : random.below(6_000))

export async function stopPostgres({ postgres, tally }: Stage, ms: number): Promise<void> {
  postgres.killAll()
  await wait(ms)
  await postgres.restart()
  tally.add('fleet: PostgreSQL killed')
}
