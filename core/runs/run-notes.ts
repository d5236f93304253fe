import { createHash } from 'node:crypto'
import type { Notes } from '../state/notes.ts'
import type { Identity } from './identity.ts'
import { runOfUse } from './name.ts'
import { pageName } from './view/view.ts'

export type JobName = 'import' | 'recovery'

/** A write run, as all its steps know it. */
export interface ChangeRun {
  job: JobName
  run: string
  /** The folder of its changes and reports, relative to the data folder. */
  folder: string
  identity: Identity
}

/** An operator's decision about a run or one of its rows. Name and reason are not verified. */
export interface Decision {
  at: string
  /** `sending`: what `canary` is in a run that had none. */
  about: 'approval' | 'canary' | 'sending' | 'breaker' | 'limits' | 'row'
  by: string
  why: string
  row?: number
  /** The id under which the operator says the row exists. */
  exists?: string
  /** Whether the service confirmed that id. */
  confirmed?: boolean
  absent?: true
  drop?: true
}

/** How a run ended. */
export interface EndedNote {
  how: 'finished' | 'stopped' | 'refused' | 'failed' | 'dryRun'
  /**
   * Why it ended before everything was done, for people. A finished run gives up the rest: an import reports it as not
   * tried and frees it for other runs.
   */
  why?: string
  /** All that went first failed, so nothing else was sent. */
  canary?: true
  at: string
}

export type RunEnd = Omit<EndedNote, 'at'>

/** The reports in the folder of every write run. */
export const reportFiles = { report: 'report.json', page: pageName } as const

/** A row as a decision on it found it: both change when it is sent or closed again. */
export interface FoundRow {
  row: number
  claims: number
  closedAt: number | null
}

/**
 * What is known of runs besides their rows: JSON documents in the state, each under the run and a name. They are written
 * for an attempt of a step, and nothing is left of one that was given up and wakes after a later attempt has written.
 */
export interface RunNotes {
  /** The notes of a run by name; `Known` says which the job writes. Any of them may be missing after a crash. */
  read<Known>(run: string): Promise<Noted<Known>>
  /**
   * Names a run after its workflow id, which a person may have used before: the id, `<id>.2`, `<id>.3` and so on, the first
   * that no run has, or whose run is the same.
   */
  name<Known extends { plan: ChangeRun }>(
    workflowId: string,
    isSame: (plan: Known['plan']) => boolean,
  ): Promise<{ run: string; noted: Noted<Known> }>
  /**
   * Writes notes, all or none of them, and replaces those of the same names. `null` removes one; what is left of it keeps an earlier attempt from bringing it
   * back.
   *
   * @throws {SupersededError} a later attempt has written one of them
   */
  write(run: string, notes: Readonly<Record<string, unknown>>): Promise<void>
  /** Records decisions. One on a row that is already recorded, at any time, is not added again. */
  addDecisions(run: string, decisions: readonly Decision[]): Promise<void>
  /**
   * Notes, before a decision is applied, how it found its rows; returns what was noted first. So a step that is
   * repeated, also by a Reset, knows which rows have changed since.
   *
   * @param options.id the decision's
   */
  addFound(
    run: string,
    options: { id: string; rows: readonly FoundRow[] },
  ): Promise<ReadonlyMap<number, FoundRow>>
}

export type Noted<Known> = Partial<Known> & { decisions: Decision[] }

const kinds = { decision: 'decision ', found: 'found ' } as const

/**
 * @param options.attempt when Temporal scheduled the attempt of the step, by its clock. Absent where no worker runs: then
 *   every note is replaced.
 */
export function createRunNotes({ notes, attempt }: { notes: Notes; attempt?: number }): RunNotes {
  const read = async <Known>(run: string): Promise<Noted<Known>> => {
    const all = (await notes.of(runSubject(run))).filter(({ body }) => body !== null)
    const decisions = all.filter(({ name }) => name.startsWith(kinds.decision))
    const known = Object.fromEntries(all.map(({ name, body }) => [name, body])) as Partial<Known>
    return { ...known, decisions: decisions.map(({ body }) => body as Decision) }
  }
  return {
    read,
    async name<Known extends { plan: ChangeRun }>(
      workflowId: string,
      isSame: (plan: Known['plan']) => boolean,
    ) {
      for (let use = 1; ; use += 1) {
        const run = runOfUse(workflowId, use)
        const noted = await read<Known>(run)
        if (noted.plan === undefined || isSame(noted.plan)) return { run, noted }
      }
    },
    write: (run, written) => notes.put({ subject: runSubject(run), attempt, notes: written }),
    async addDecisions(run, decisions) {
      const added = decisions.map((body) => ({ name: kinds.decision + keyOf(body), body }))
      await notes.add({ subject: runSubject(run), notes: added })
    },
    async addFound(run, { id, rows }) {
      const subject = runSubject(run)
      const prefix = `${kinds.found}${id} `
      const added = rows.map(({ row, claims, closedAt }) => ({
        name: prefix + row,
        body: { row, claims, closedAt },
      }))
      await notes.add({ subject, notes: added })
      const found = (await notes.of(subject)).filter(({ name }) => name.startsWith(prefix))
      return new Map(found.map(({ body }) => [(body as FoundRow).row, body as FoundRow]))
    },
  }
}

const runSubject = (run: string): string => `run ${run}`

/** The same for a decision on a row that is repeated. */
function keyOf(decision: Decision): string {
  const own = decision.about === 'row' ? { ...decision, at: '', confirmed: undefined } : decision
  return createHash('sha256').update(JSON.stringify(own)).digest('hex')
}
