import type { Client } from '@temporalio/client'
import { isTrouble, type Trouble } from '../core/runs/view/trouble.ts'
import type { LeaseOwner } from '../core/state/leases.ts'

/** The argument of the signal `trouble`: what holds up a step of a run; `trouble` is absent once nothing does. */
export interface TroubleNote {
  /** Identifies the step. */
  step: string
  /** The list that it reads, if it reads one. */
  resource?: string
  trouble?: Trouble
}

/** A shorter trouble is not worth an event in the history. */
const lastsMs = 5_000
/** Trouble that lasts is reported again, as it is then, at least this far apart. */
const updatedMs = 60_000
/**
 * A step tells of a new trouble at least this long after the last one. A service that limits the rate asks for a pause every
 * minute, of each range of each list, and a run takes 10,000 signals: after them, it takes no pause and no stop.
 */
const everyMs = 600_000

/**
 * Tells a run what holds up a step of its own, for its Current Details: a workflow does not see the heartbeats of a
 * step under way. It is best effort: the next signal, or the end of the step, makes up for one that is lost.
 */
export function createTroubleSignals(options: {
  client: Pick<Client, 'workflow'>
  /** The run of the step. */
  run: LeaseOwner
  step: string
  resource: string | undefined
  /** What the last attempt of the step has told. */
  before: Trouble | undefined
}) {
  const { client, run, step, resource, before } = options
  let told = before === undefined ? undefined : keyOf(before)
  let toldAt = Number.NEGATIVE_INFINITY

  const send = async (trouble: Trouble | undefined) => {
    told = trouble && keyOf(trouble)
    const note: TroubleNote = {
      step,
      ...(resource !== undefined && { resource }),
      ...(trouble && { trouble }),
    }
    await client.workflow
      .getHandle(run.workflowId, run.runId)
      .signal('trouble', note)
      .catch(() => undefined)
  }
  return {
    /** Called every second. */
    async see(trouble: Trouble | undefined): Promise<void> {
      if (trouble === undefined) {
        if (told !== undefined) await send(undefined)
        return
      }
      if (told === keyOf(trouble)) return
      const isLong = (trouble.pause?.until ?? Date.now()) - trouble.since >= lastsMs
      const isDue = performance.now() - toldAt >= (told === undefined ? everyMs : updatedMs)
      // A token needs a person, who has minutes.
      if (trouble.tokenUntil === undefined && !(isLong && isDue)) return
      toldAt = performance.now()
      await send(trouble)
    },
    /** Called at the end of an attempt that failed because of this: the next one may take a while. */
    async failed(trouble: Trouble | undefined): Promise<void> {
      if (trouble !== undefined && told !== keyOf(trouble)) await send(trouble)
    },
  }
}

const keyOf = ({ what, since, pause, tokenUntil }: Trouble) =>
  JSON.stringify([what, since, pause?.asked, tokenUntil])

/** The trouble in the heartbeat details of a step. */
export function troubleIn(details: unknown): Trouble | undefined {
  const { trouble } = { ...(details as { trouble?: unknown } | undefined) }
  return isTrouble(trouble) ? trouble : undefined
}
