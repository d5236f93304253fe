import { toMs } from '../runs/inputs.ts'
import type { ChangeToStage } from '../changes/staged-changes.ts'
import { toInstant } from '../billing/instants.ts'
import type { KeyHistory } from '../state/ledger/queries.ts'
import { factsFrom } from '../changes/kinds/resume-subscription.ts'
import type { Candidate } from './candidates.ts'
import { addListValue, type ListValues, noListValues } from './list-value.ts'
import { becauseOf, isReason } from './reasons.ts'
import { type CandidateFilter, type RecoveryPlan, dayMarginMs, isLongEnough } from './input.ts'

export type Selected = ChangeToStage & { body: Candidate }

interface SelectOptions extends CandidateFilter {
  plan: RecoveryPlan
  candidates: readonly Candidate[]
  /** The history of subscriptions that were resumed before. */
  history: ReadonlyMap<string, KeyHistory>
}

/**
 * Decides on each candidate, longest-waiting first: resume it, leave it to a person, or skip it because it was
 * resumed recently or exceeds the limit. Times are compared with the run's start, so that the same candidates
 * always give the same rows.
 */
export function selectCandidates(options: SelectOptions): Selected[] {
  const { plan, history } = options
  const rows: Selected[] = []
  let tried = 0
  for (const candidate of inOrder(options.candidates)) {
    if (!isWanted(candidate, options)) continue
    const past = history.get(candidate.id)
    let closed = whyClosed(candidate, { ...options, past })
    if (closed === undefined && tried >= (plan.limits.maxChanges ?? Infinity))
      closed = { state: 'dropped', outcome: 'notTried', error: beyondBound(plan) }
    if (closed === undefined) tried += 1
    rows.push({
      row: rows.length + 1,
      body: { ...candidate, ...(plan.nextBilling !== undefined && { next_billing: plan.nextBilling }) },
      breakerKey: candidate.snapshot.reason,
      attemptsBefore: attemptsBefore(candidate, past),
      ...(closed && { closed }),
    })
  }
  return rows
}

const beyondBound = ({ limits }: RecoveryPlan) =>
  `only ${limits.maxChanges} are resumed in one run (maxChanges); the same input resumes the next ones`

/** Sorts candidates by how long they have needed attention, longest first, and drops duplicates. */
function inOrder(candidates: readonly Candidate[]): Candidate[] {
  const byId = new Map(candidates.map((candidate) => [candidate.id, candidate]))
  const at = ({ snapshot: { since } }: Candidate) => toInstant(since) ?? Infinity
  return [...byId.values()].toSorted((a, b) => compare(at(a), at(b)) || compare(a.id, b.id))
}

const compare = <T extends string | number>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0)

/** Those that the filters exclude have no row in the report. */
const isWanted = (
  { id, customer, snapshot: { reason, since } }: Candidate,
  { plan, customers, skip = [] }: SelectOptions,
): boolean =>
  (!plan.named || isTried(reason, plan)) &&
  (customers?.includes(customer) ?? true) &&
  !skip.includes(customer) &&
  !skip.includes(id) &&
  isLongEnough(since, plan)

const isTried = (reason: string, plan: RecoveryPlan) => isReason(reason) && plan.reasons.includes(reason)

function whyClosed(
  candidate: Candidate,
  { plan, past }: SelectOptions & { past: KeyHistory | undefined },
): ChangeToStage['closed'] {
  const { reason } = candidate.snapshot
  if (!isTried(reason, plan))
    return {
      state: 'parked',
      outcome: 'needsPerson',
      error: `${reason || 'no reason'}: ${becauseOf(reason)}`,
    }
  if (past?.lastSentAt === null || past === undefined) return undefined
  const at = new Date(past.lastSentAt).toISOString()
  const attempts = attemptsBefore(candidate, past)
  if (attempts >= plan.attempts)
    return {
      state: 'parked',
      outcome: 'attemptsUsedUp',
      error: `resumed ${attempts} times without lasting effect, last at ${at} by ${past.run}; tried again when it falls more than 24 hours after that, or with attempts above ${attempts}`,
    }
  const until = past.lastSentAt + toMs(plan.coolDown)
  if (until <= Date.parse(plan.startedAt)) return undefined
  return {
    state: 'dropped',
    outcome: 'coolingDown',
    error: `resumed at ${at} by ${past.run}; tried again from ${new Date(until).toISOString()}, or now with a shorter coolDown`,
  }
}

/**
 * A subscription that needs attention again within this time of our own resume is still in the same incident: a
 * charge may fail long after the lookup, and a subscription that fails daily after its resume would otherwise be
 * resumed daily without end.
 */
const sameTroubleMs = 24 * 3_600_000

/**
 * The resume requests that still count: those of the same incident, which is one that the last lookup saw or that
 * began soon after the last resume.
 */
function attemptsBefore({ snapshot: { since } }: Candidate, past: KeyHistory | undefined): number {
  if (past === undefined) return 0
  const { attempts, lastSentAt, answer } = past
  const microseconds = toInstant(since)
  const isSame =
    lastSentAt === null ||
    microseconds === undefined ||
    factsFrom(answer)?.needs_attention === since ||
    microseconds / 1000 <= lastSentAt + sameTroubleMs
  return isSame ? attempts : 0
}

/** The counts that a person needs before they approve a recovery: what it would do, or does. */
export interface Preview {
  /** The number of subscriptions to resume. */
  toResume: number
  byReason: Record<string, number>
  /** The number to resume, by collection scheme. Those with `charge_payment` charge a card or account immediately. */
  byScheme: Record<string, number>
  /**
   * The number to resume, by their next billing date. The service does not document what a resume without
   * next_billing bills.
   */
  byNextBilling: { past: number; today: number; future: number; none: number }
  /** The day that counts as today: that of the workspace. */
  today: string
  /** The number not resumed, by outcome: needsPerson, coolingDown, attemptsUsedUp, notTried. */
  notResumed: Record<string, number>
  /** The number that need a person, by reason. */
  needsPerson: Record<string, number>
  /** What those to resume cost per cycle by list price. */
  listValue: ListValues
}

export function toPreview(rows: readonly Selected[], now: number): Preview {
  const today = dayOfWorkspace(rows, now)
  const preview: Preview = {
    toResume: 0,
    byReason: {},
    byScheme: {},
    byNextBilling: { past: 0, today: 0, future: 0, none: 0 },
    today,
    notResumed: {},
    needsPerson: {},
    listValue: noListValues(),
  }
  for (const { body, closed } of rows) {
    const { collection_scheme: scheme, snapshot } = body
    const { reason, next_billing: nextBilling, value } = snapshot
    if (closed !== undefined) {
      count(preview.notResumed, closed.outcome)
      if (closed.outcome === 'needsPerson') count(preview.needsPerson, reason)
      continue
    }
    preview.toResume += 1
    count(preview.byReason, reason)
    addListValue(preview.listValue, reason, value)
    count(preview.byScheme, scheme === '' ? 'none' : scheme)
    preview.byNextBilling[when(nextBilling.slice(0, 10), today)] += 1
  }
  return preview
}

/**
 * Today by the offset of the latest time that the service wrote: it writes its times in the workspace's zone. Without
 * one, a date is today as long as it is today anywhere on Earth.
 */
function dayOfWorkspace(rows: readonly Selected[], now: number): string {
  const [latest] = rows
    .map(({ body }) => body.snapshot.since)
    .map((since) => ({ since, at: toInstant(since) ?? -Infinity }))
    .toSorted((a, b) => b.at - a.at)
  const [, zone, sign, hours, minutes] = /(Z|([+-])(\d\d):(\d\d))$/.exec(latest?.since ?? '') ?? []
  const east = (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000
  return new Date(now + (zone === undefined ? -dayMarginMs : east)).toISOString().slice(0, 10)
}

function when(date: string, today: string): keyof Preview['byNextBilling'] {
  if (date === '') return 'none'
  return date < today ? 'past' : date === today ? 'today' : 'future'
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
