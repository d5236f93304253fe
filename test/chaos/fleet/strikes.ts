import proto from '@temporalio/proto'
import { availableParallelism, loadavg } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../random.ts'
import { type FreezePoint, freezePoints } from './fleet.ts'
import type { FleetRun, Stage } from './play-fleet.ts'

/** How often each strikes. */
export interface Plan {
  freezes: number
  /** `anywhere`: at any moment. */
  points: readonly (FreezePoint | 'anywhere')[]
  /** Of those, so many when all is calm: they are measured. */
  kills: number
  measuredKills: number
  outages: number
  measuredOutages: number
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
    measuredKill: plan.measuredKills,
    outage: plan.outages,
    measuredOutage: plan.measuredOutages,
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
    measuredKill: async () => {
      await Promise.all(active)
      await measureKill(stage, random)
    },
    outage: async () => {
      await stopPostgres(stage, outageMs(random))
    },
    measuredOutage: async () => {
      await Promise.all(active)
      await measureOutage(stage, outageMs(random))
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

export async function stopPostgres({ postgres, tally }: Stage, ms: number): Promise<number> {
  postgres.killAll()
  await wait(ms)
  await postgres.restart()
  tally.add('fleet: PostgreSQL killed')
  return performance.now()
}

/** A run without a request for this long is not at work. */
const recentMs = 1_000
const calmWithinMs = 20_000
const resumesWithinMs = 40_000
/**
 * From SIGKILL until another worker is at work: 5 s without a heartbeat, a second until that is noticed, the first retry after
 * 1 s. Its first request may come later: at a low rate, the reads by which it begins give way to the writes of other runs.
 */
const mostMsAfterKill = 8_000
/** Each failed attempt of a step makes Temporal wait longer before the next one, up to 30 s for one that sends. */
const firstPauseMs = 1_000
const mostPauseMs = 30_000
const mostMsAfterOutage = 2_000
/** On a machine with more to do, it is the machine that is measured: the figures are printed and not judged. */
const isOverloaded = () => (loadavg()[0] ?? 0) > 2 * availableParallelism()

const lastOf = ({ fleet }: Stage, { resource }: FleetRun) =>
  fleet.arrivals.findLast((arrival) => arrival.resource === resource)

/** The runs that are at work, and by whom; empty if none is soon. */
async function findAtWork(stage: Stage): Promise<{ run: FleetRun; pid: number }[]> {
  for (const until = performance.now() + calmWithinMs; performance.now() < until && !stage.isOver();) {
    const busy = stage.runs.filter((run) => run.isBusy())
    const found = busy.flatMap((run) => {
      const last = lastOf(stage, run)
      const isRecent = last !== undefined && last.at > performance.now() - recentMs
      return isRecent && stage.fleet.pids().includes(last.pid) ? [{ run, pid: last.pid }] : []
    })
    if (found.length > 0 && found.length === busy.length) return found
    await wait(20)
  }
  return []
}

/** Kills a worker and measures when each run that it worked on is resumed by another one. */
export async function measureKill(stage: Stage, random: Random): Promise<void> {
  const { fleet, tally, patience, find } = stage
  const atWork = await findAtWork(stage)
  if (atWork.length === 0) return
  const { pid } = random.pick(atWork)
  const struck = atWork.filter((one) => one.pid === pid).map(({ run }) => run)
  const killed = await fleet.kill(pid)
  if (killed === undefined) return
  tally.add('fleet: killed')
  await Promise.all([
    killed.replaced,
    ...struck.map(async (run) => {
      const [work, ms] = await Promise.all([
        firstWork(stage, run, { after: killed.at, exceptBy: pid }),
        firstRequest(stage, run, { after: killed.at, exceptBy: pid }),
      ])
      if (work === undefined) return
      const pause = `a retry after ${(work.pauseMs / 1_000).toFixed(1)} s`
      tally.took(`fleet: from SIGKILL until another worker is at work on the ${run.job}, ${pause}`, work.ms)
      if (ms !== undefined)
        tally.took(`fleet: from SIGKILL to the next request of the ${run.job}, ${pause}`, ms)
      const mostMs = mostMsAfterKill + work.pauseMs - firstPauseMs
      if (work.ms > patience * mostMs && !isOverloaded())
        find(`the ${run.job} was resumed ${Math.round(work.ms)} ms after a SIGKILL, with ${pause}`)
    }),
  ])
}

/** Stops PostgreSQL, measures when the runs resume, and whether Temporal has given up an attempt. */
export async function measureOutage(stage: Stage, awayMs: number): Promise<void> {
  const { tally, patience, find } = stage
  const atWork = await findAtWork(stage)
  if (atWork.length === 0) return
  const before = await Promise.all(atWork.map(({ run }) => attemptsOf(run)))
  const back = await stopPostgres(stage, awayMs)
  await Promise.all(
    atWork.map(async ({ run }, index) => {
      const ms = await firstRequest(stage, run, { after: back })
      if (ms === undefined) return
      tally.took(`fleet: from PostgreSQL's return to the next request of the ${run.job}`, ms)
      if (ms > patience * mostMsAfterOutage && !isOverloaded())
        find(
          `the ${run.job} resumed ${Math.round(ms)} ms after PostgreSQL was back (away ${Math.round(awayMs)} ms)`,
        )
      for (const [id, { step, attempt, failure }] of await attemptsOf(run))
        if (attempt > (before[index]?.get(id)?.attempt ?? 1))
          find(
            `an attempt of ${step} of the ${run.job} ended while PostgreSQL was away for ${awayMs} ms: ${failure}`,
          )
    }),
  )
}

/** In ms after `after`; undefined if the run ends without one. */
async function firstRequest(
  { fleet, find, isOver }: Stage,
  { resource, job }: FleetRun,
  { after, exceptBy }: { after: number; exceptBy?: number },
): Promise<number | undefined> {
  for (const until = performance.now() + resumesWithinMs; performance.now() < until;) {
    const found = fleet.arrivals.find(
      (arrival) => arrival.resource === resource && arrival.at > after && arrival.pid !== exceptBy,
    )
    if (found !== undefined) return found.at - after
    if (isOver()) return undefined
    await wait(20)
  }
  find(`the ${job} did not resume in ${resumesWithinMs / 1_000} s`)
  return undefined
}

/**
 * When another worker than `exceptBy` is at work on the run, in ms after `after`, and how long Temporal waited before that
 * attempt; undefined if the run ends before.
 */
async function firstWork(
  stage: Stage,
  run: FleetRun,
  { after, exceptBy }: { after: number; exceptBy: number },
): Promise<{ ms: number; pauseMs: number } | undefined> {
  let pauseMs = firstPauseMs
  for (const until = performance.now() + resumesWithinMs; performance.now() < until && !stage.isOver();) {
    const steps = [...(await attemptsOf(run)).values()]
    pauseMs = Math.max(pauseMs, ...steps.map((step) => Math.min(step.pauseMs, mostPauseMs)))
    const isAtWork = steps.some(({ isStarted, worker }) => isStarted && !worker.includes(` ${exceptBy}@`))
    if (isAtWork) return { ms: performance.now() - after, pauseMs }
    const last = lastOf(stage, run)
    if (last !== undefined && last.at > after && last.pid !== exceptBy)
      return { ms: last.at - after, pauseMs }
    await wait(50)
  }
  return undefined
}

/** Of each step of a run that is under way, the current attempt, and why the one before ended. */
async function attemptsOf({ handle }: FleetRun) {
  const { raw } = await handle.describe()
  return new Map(
    (raw.pendingActivities ?? []).map((step) => [
      step.activityId ?? '',
      {
        step: step.activityType?.name ?? '',
        attempt: step.attempt ?? 1,
        failure: step.lastFailure?.message ?? 'no failure',
        isStarted:
          step.state === proto.temporal.api.enums.v1.PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        /** Its identity, which ends with its process id and the machine. */
        worker: step.lastWorkerIdentity ?? '',
        /** Before this attempt, while it has not started; Temporal gives it without the bound of the step's policy. */
        pauseMs:
          Number(step.currentRetryInterval?.seconds ?? 0) * 1e3 +
          (step.currentRetryInterval?.nanos ?? 0) / 1e6,
      },
    ]),
  )
}
