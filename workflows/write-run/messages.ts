import { ApplicationFailure } from '@temporalio/workflow'
import type { Decision as Resolved } from '../../core/changes/reconcile/resolve.ts'
import type { ReportCounts } from '../../core/runs/counts.ts'
import type { WriteProgress } from './progress.ts'

// The messages that people send to a running write run, and their validation.

export interface Approval {
  by: string
  why: string
  /** How many are deleted; needed for deletes only. */
  count?: number
}

export interface Resolution {
  /** One row or several, of which the same is true. */
  row?: number
  rows?: number[]
  /** The id under which the service has it, or that it is not there, or that it is to be left. */
  exists?: string
  absent?: true
  drop?: true
  by: string
  why: string
}

export type LimitsChange = { readonly [limit: string]: unknown } & { by?: string; why?: string }

export interface ReportQuestion {
  outcome?: keyof ReportCounts
  /** From 1. */
  page?: number
}

/** The rows that it is about. */
export const rowsOf = ({ row, rows }: Resolution): number[] => rows ?? (row === undefined ? [] : [row])

/** So many rows make one step of seconds. */
const mostResolved = 1_000

export function decisionOf({ exists, absent }: Resolution): Resolved {
  if (exists !== undefined) return { exists }
  return absent === true ? { absent } : { drop: true }
}

const refused = (message: string) => ApplicationFailure.nonRetryable(message, 'InvalidInput')

export function checkApproval(said: unknown, { waitingFor }: WriteProgress): void {
  const { by, why, count } = namedFields(said, ['by', 'why', 'count'])
  checkPerson({ by, why })
  if (waitingFor === undefined) throw refused('The run waits for no approval.')
  if (waitingFor.count !== undefined && count !== waitingFor.count)
    throw refused(`Type how many are deleted: "count": ${waitingFor.count}.`)
}

/** Somebody else was quicker, or nobody was quick enough. */
export const isOver = (by: string) =>
  refused(`What ${by} answered is over, so nothing was approved by it; look what the run waits for now.`)

/** The type of the failure that refuses an update while the run reports. */
export type RunEnding = 'RunEnding'

export const isEnding = () =>
  ApplicationFailure.nonRetryable(
    'The run is writing its report and takes no more updates. Try again once it has ended.',
    'RunEnding' satisfies RunEnding,
  )

/** Far more than any service is asked at once; what is looked up together is held in memory together. */
const mostInFlight = 100

export function checkLimits(said: unknown, names: readonly string[]): void {
  const { by: _by, why: _why, ...limits } = namedFields(said, [...names, 'by', 'why'])
  if (Object.keys(limits).length === 0) throw refused(`Name one of ${names.join(', ')}.`)
  for (const [name, value] of Object.entries(limits)) {
    const least = name === 'requestsPerSecond' ? Number.MIN_VALUE : name === 'concurrency' ? 1 : 0
    const isWhole = name === 'requestsPerSecond' || name === 'maxFailureShare' || Number.isInteger(value)
    const most = name === 'maxFailureShare' ? 1 : name === 'concurrency' ? mostInFlight : Infinity
    if (typeof value !== 'number' || !(value >= least) || value > most || !isWhole)
      throw refused(`${name}: ${String(value)} is no ${isWhole ? '' : 'whole '}number that it may be.`)
  }
}

export function checkResolution(said: unknown): void {
  const { row, rows, exists, absent, drop, by, why } = namedFields(said, [
    'row',
    'rows',
    'exists',
    'absent',
    'drop',
    'by',
    'why',
  ])
  checkPerson({ by, why })
  const named = row === undefined ? rows : rows === undefined ? [row] : undefined
  if (!Array.isArray(named) || named.length === 0 || !named.every((one) => Number.isInteger(one)))
    throw refused('Name the row, as parked.csv does: "row": 17, or several of them: "rows": [17, 18].')
  if (named.length > mostResolved) throw refused(`Name at most ${mostResolved} rows at once.`)
  const decisions = [typeof exists === 'string' && exists !== '', absent === true, drop === true]
  if (decisions.filter(Boolean).length !== 1)
    throw refused('Say one of "exists": "<id>", "absent": true, "drop": true.')
  if (exists !== undefined && named.length > 1)
    throw refused('Name one row with "exists": an id is of one record.')
}

function checkPerson({ by, why }: { by?: unknown; why?: unknown }): void {
  if (typeof by !== 'string' || by.trim() === '') throw refused('Say who you are: "by".')
  if (typeof why !== 'string' || why.trim() === '') throw refused('Say why: "why".')
}

function namedFields(said: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof said !== 'object' || said === null || Array.isArray(said))
    throw refused(`Give one object with ${names.join(', ')}.`)
  const unknown = Object.keys(said).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw refused(`There is no field ${unknown}; the fields are ${names.join(', ')}.`)
  return said as Record<string, unknown>
}
