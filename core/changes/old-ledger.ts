import { type ClaimsMark, refuseOlderThanMark } from '../state/claims-mark.ts'
import { OldLedgerError } from '../state/errors.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { type ChangeKind, changeKindNames } from './change-kind.ts'
import { takeOver } from './close.ts'
import { changeKinds } from './kinds.ts'
import { type ChangesOf, type OnKeyHeld, readBegin, stageKeptChanges } from './staged-changes.ts'
import { asksForOther } from './body.ts'
import { isDoneEarlier } from './outcomes.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { NewChange } from '../state/ledger/stage.ts'
import type { ChangeState } from '../state/schema.ts'

/** How many rows of a run were staged, and the `claims` of `Ledger.known` then. */
interface Told {
  rows: number
  claims: number
}

/**
 * Returns the `claims` that the ledger knows.
 * @throws {OldLedgerError} the ledger knows fewer of its rows or claims
 */
export async function refuseOlderThanTold(options: {
  ledger: Pick<Ledger, 'known'>
  run: string
  told: Told
}): Promise<number> {
  const { ledger, run, told } = options
  const known = await ledger.known({ run })
  const lacks = [
    ...(known.rows < told.rows ? [`${told.rows - known.rows} of ${told.rows} rows`] : []),
    ...(known.claims < told.claims ? ['claims'] : []),
  ]
  if (lacks.length > 0) throw new OldLedgerError({ lacks: `${lacks.join(' and ')} of ${run}` })
  return known.claims
}

/** The ledger of a run that sends, which must not forget what was claimed. */
export interface WatchedLedger {
  ledger: Ledger
  /** What Temporal is told; see `Ledger.known`. */
  readonly claims: number
  /** Raises the mark, at the end of a segment. */
  end(): Promise<void>
}

/**
 * Refuses a ledger that is older than its mark, or than what Temporal was told of a run, and keeps comparing while the
 * run sends: a server that fails over replaces the ledger under a running sender.
 *
 * @throws {OldLedgerError}
 */
export async function watchLedger(options: {
  ledger: Ledger
  /** Set for a state on PostgreSQL; `state.db` was compared when it was opened. */
  mark: ClaimsMark | undefined
  run: string
  told: Told
}): Promise<WatchedLedger> {
  const { ledger, mark, run, told } = options
  await refuseOlderThanMark({ ledger, mark })
  const before = mark === undefined ? 0 : await ledger.claimed()
  const first = await refuseOlderThanTold({ ledger, run, told })
  let own = 0
  return {
    get claims() {
      return first + own
    },
    ledger: {
      ...ledger,
      async claim(options) {
        const claimed = await ledger.claim(options)
        if (claimed !== undefined) own += 1
        return claimed
      },
      async due(options) {
        const rows = await ledger.due(options)
        // Afterwards: these rows are not from an older ledger then.
        await refuseOlderThanTold({ ledger, run, told: { rows: told.rows, claims: first + own } })
        await mark?.raise(before + own)
        return rows
      },
    },
    end: async () => await mark?.raise(Math.max(before + own, await ledger.claimed())),
  }
}

/** The rows of a run that a repair has changed. */
export interface RepairedRun {
  run: string
  /** Rows that the ledger lacked. */
  restaged: number
  /** Other rows that may have been sent since the backup. */
  unknown: number
}

/**
 * Repairs a ledger that was restored from a backup, while no worker runs. Nothing shows which changes were sent since: what
 * the ledger lacks is staged again, and everything that is open, of all runs, becomes unknown, so that it is looked up or
 * left to a person and never sent blindly. Repeating it after an interruption completes it: until the last write, the
 * ledger is older than its mark.
 *
 * @throws {ChangeError}
 */
export async function repairLedger(options: {
  ledger: Ledger
  mark: ClaimsMark | undefined
  /** The folders of the runs that had staged all of their changes. */
  folders: readonly string[]
}): Promise<RepairedRun[]> {
  const { ledger, mark, folders } = options
  const forgotten = await forgottenClaims({ ledger, mark })
  const kinds = changeKindNames.filter((kind) => changeKinds[kind].confirmedByLookup === true)
  const bounded = { kinds, sends: lostSends(forgotten) }
  const unknownSince = ledger.now()
  const restaged = new Map<string, number>()
  const later: string[] = []
  for (const { folder, ...of } of await latestFirst(folders)) {
    const { run, kind } = of
    const isBounded = kinds.includes(kind)
    const sentAt = isBounded ? unknownSince : null
    const restored = { sends: isBounded ? bounded.sends : 1, unknownSince, sentAt }
    const onHeld = leaveTaken({ ledger, run, kind: changeKinds[kind] })
    const prepare = async (kept: readonly NewChange[]) => {
      const closed = await endSkipped({ ledger, of, later, kept })
      // It was staged once, so what was done before it does not keep it from being staged again.
      return kept.map((one) => ({ ...one, restored, sendAgain: true, ...closed.get(one.row) }))
    }
    restaged.set(run, await stageKeptChanges({ ledger, folder, onHeld, prepare }))
    later.push(run)
  }
  const open = await ledger.markRestored({ at: ledger.now(), bounded, forgotten })
  await mark?.raise(await ledger.claimed())
  const runs = new Set([...restaged.keys(), ...open.keys()])
  return [...runs].flatMap((run) => {
    const repaired = { run, restaged: restaged.get(run) ?? 0, unknown: open.get(run) ?? 0 }
    return repaired.restaged + repaired.unknown === 0 ? [] : [repaired]
  })
}

/** How many claims a ledger lacks, as far as its mark has them. */
const forgottenClaims = async ({ ledger, mark }: { ledger: Ledger; mark: ClaimsMark | undefined }) =>
  Math.max(0, ((await mark?.read()) ?? 0) - (await ledger.claimed()))

/** All of the claims that are missing may belong to one change, and the attempts of a resume are a hard bound. */
const lostSends = (forgotten: number) => Math.max(1, forgotten)

/** The `claims` of a run that a repair is about to count, as Temporal was told of them. */
export const claimsAtRepair = async (of: { ledger: Ledger; mark: ClaimsMark | undefined; run: string }) =>
  (await of.ledger.known(of)).claims + lostSends(await forgottenClaims(of))

/** More than the attempts of any resume. */
const mostLost = 1_000

/**
 * Counts the claims of which Temporal was told before a repair, and which that did not count, against each resume of the
 * run: the mark may have been restored, too.
 */
export async function countLostClaims(options: {
  ledger: Pick<Ledger, 'repairedAt' | 'countLost'>
  run: string
  told: Pick<Told, 'claims'>
  /** See `claimsAtRepair`. */
  atRepair: number
}): Promise<void> {
  const { ledger, run, told, atRepair } = options
  const lost = told.claims - atRepair
  if (lost <= 0 || told.claims >= (await ledger.repairedAt())) return
  await ledger.countLost({ run, sends: Math.min(lost, mostLost) })
}

/** The latest first, so that rows taken over several times, and values changed several times, end up with the last run. */
async function latestFirst(folders: readonly string[]) {
  const runs = await Promise.all(folders.map(async (folder) => ({ ...(await readBegin(folder)), folder })))
  return runs.toSorted((one, other) => Date.parse(other.at) - Date.parse(one.at))
}

/**
 * Closes updates that had ended without effect, because a later run has skipped their records: an earlier run had done its
 * values. Sent again, they would undo those.
 */
async function endSkipped(options: {
  ledger: Ledger
  of: ChangesOf
  /** The runs that were staged after it. */
  later: readonly string[]
  kept: readonly NewChange[]
}): Promise<ReadonlyMap<number, Pick<NewChange, 'closed'>>> {
  const { ledger, of, later, kept } = options
  const closed = new Map<number, Pick<NewChange, 'closed'>>()
  if (typeof changeKinds[of.kind].repeats !== 'function') return closed
  const keys = kept.map(({ key }) => key)
  const known = new Map((await ledger.underKeys({ ...of, keys })).map((row) => [row.row, row]))
  const open = kept.filter(({ row, closed: before }) => {
    const { state = 'staged' } = known.get(row) ?? {}
    return before === undefined && openStates.includes(state)
  })
  const byKey = Map.groupBy(open, ({ key }) => key)
  if (open.length === 0) return closed
  for (const run of later) {
    const ended: LedgerRow[] = []
    for (const skipped of await ledger.underKeys({ ...of, run, keys: [...byKey.keys()] })) {
      if (!isDoneEarlier(skipped)) continue
      const error = `row ${skipped.row} of the run ${run} found that it had ended`
      for (const { row, body } of byKey.get(skipped.key) ?? []) {
        if (!asksForOther(skipped.body, body)) continue
        closed.set(row, { closed: { state: 'dropped', outcome: 'takenOver', error } })
        ended.push(...[known.get(row) ?? []].flat())
      }
    }
    await release({ ledger, rows: ended, by: run })
  }
  return closed
}

const openStates: readonly ChangeState[] = ['staged', 'sending', 'unknown']

/** Drops what is open, for another run. */
async function release({ ledger, rows, by }: { ledger: Ledger; rows: readonly LedgerRow[]; by: string }) {
  await takeOver({ ledger, rows: rows.filter(({ state }) => state === 'staged'), by })
  await takeOver({ ledger, rows: rows.filter(({ state }) => state !== 'staged'), by, because: 'restore' })
}

/**
 * If another run holds a row in the restored ledger and has not sent it, this run took it over after the backup and takes
 * it over again: otherwise both would send it, or neither. An earlier update that was in flight had ended before this run
 * could stage its own: sent again, it would undo that.
 */
function leaveTaken({ ledger, run, kind }: { ledger: Ledger; run: string; kind: ChangeKind }): OnKeyHeld {
  return async (held) => {
    type Held = (typeof held)[number]
    const isUnsent = ({ by }: Held) => by.state === 'staged'
    const isUndone = ({ by }: Held) =>
      typeof kind.repeats === 'function' &&
      (by.state === 'sending' || (by.state === 'unknown' && by.outcome !== 'restored'))
    const isReleased = (one: Held) => isUnsent(one) || isUndone(one)
    await release({ ledger, rows: held.filter(isReleased).map(({ by }) => by), by: run })
    const left = held.filter((one) => !isReleased(one))
    return new Map(
      left.map(({ row, by }) => {
        const error = `row ${by.row} of the run ${by.run} has its key`
        return [row, { state: 'dropped', outcome: 'takenOver', error }]
      }),
    )
  }
}
