import { ApplicationFailure } from '@temporalio/workflow'
import type { Decision as Resolved } from '../../core/changes/resolve.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import { withoutStack } from '../run/unwrap-failure.ts'
import type { WriteProgress } from './progress.ts'

// The messages that people send to an active write run, and their validation.

export interface Approval {
  by: string
  why: string
  /** The number of deletes; required for deletes only. */
  count?: number
}

export interface Resolution {
  /** One row, or several with the same outcome. */
  row?: number
  rows?: number[]
  /** `exists`: the id that the service has it under. `absent`: the service does not have it. `drop`: it is skipped. */
  exists?: string
  absent?: true
  drop?: true
  by: string
  why: string
}

export type LimitsChange = { readonly [limit: string]: unknown } & { by?: string; why?: string }

export interface ReportQuestion {
  outcome?: keyof ReportCounts
  /** Starts at 1. */
  page?: number
}

export const rowsOf = ({ row, rows }: Resolution): number[] => rows ?? (row === undefined ? [] : [row])

/** The most rows per update; keeps the step to a few seconds, or minutes where it looks each of them up. */
const mostResolved = 1_000

export function decisionOf({ exists, absent }: Resolution): Resolved {
  if (exists !== undefined) return { exists }
  return absent === true ? { absent } : { drop: true }
}

const refused = (message: string) => withoutStack(ApplicationFailure.nonRetryable(message, 'InvalidInput'))

/** @throws a refusal: the run is not waiting for approval, or the count is missing or wrong */
export function checkApproval(input: unknown, { waitingFor }: WriteProgress): void {
  const { by, why, count } = namedFields(input, ['by', 'why', 'count'])
  checkPerson({ by, why })
  if (waitingFor === undefined) throw refused('The run is not waiting for approval.')
  if (waitingFor.count !== undefined && count !== waitingFor.count)
    throw refused(`Confirm the number of deletes: "count": ${waitingFor.count}.`)
}

/** Another person answered first, or the time ran out. */
export const isOver = (by: string) =>
  refused(
    `${by} answered a question that is no longer open, so nothing was approved. Check the run's status.`,
  )

/** The type of the failure that refuses an update while the run reports. */
export type RunEnding = 'RunEnding'

export const isEnding = () =>
  withoutStack(
    ApplicationFailure.nonRetryable(
      'The run is writing its report and takes no more updates. Try again once it has ended.',
      'RunEnding' satisfies RunEnding,
    ),
  )

/** Far more than any service accepts; lookups in flight are held in memory together. */
const mostInFlight = 100

interface Bounds {
  least: number
  most?: number
  isWhole?: boolean
}

const boundsOf: Readonly<Record<string, Bounds>> = {
  requestsPerSecond: { least: Number.MIN_VALUE },
  concurrency: { least: 1, most: mostInFlight, isWhole: true },
  maxFailureShare: { least: 0, most: 1 },
}

/** @throws a refusal: no limit is named, or a value is out of range */
export function checkLimits(input: unknown, names: readonly string[]): void {
  const { by: _by, why: _why, ...limits } = namedFields(input, [...names, 'by', 'why'])
  if (Object.keys(limits).length === 0) throw refused(`Set at least one of ${names.join(', ')}.`)
  for (const [name, value] of Object.entries(limits)) {
    const { least, most = Infinity, isWhole = false } = boundsOf[name] ?? { least: 0, isWhole: true }
    if (typeof value === 'number' && value >= least && value <= most && (!isWhole || Number.isInteger(value)))
      continue
    const from = least === Number.MIN_VALUE ? 'above 0' : `of at least ${least}`
    const to = most === Infinity ? '' : ` and at most ${most}`
    throw refused(`${name} must be a ${isWhole ? 'whole ' : ''}number ${from}${to}, not ${String(value)}.`)
  }
}

/** @throws a refusal: a limit that can only be lowered is above that of the plan */
export function refuseHigher(
  limits: Readonly<Record<string, unknown>>,
  planned: Readonly<Record<string, unknown>>,
  lowerOnly: readonly string[] = [],
): void {
  for (const name of lowerOnly)
    if (Number(limits[name]) > Number(planned[name]))
      throw refused(
        `${name} can only be lowered from the run's ${String(planned[name])}: what is beyond it was left out when the list was read. The same input resumes the next ones.`,
      )
}

/** @throws a refusal: the rows or the decision are invalid */
export function checkResolution(input: unknown): void {
  const names = ['row', 'rows', 'exists', 'absent', 'drop', 'by', 'why']
  const { row, rows, exists, absent, drop, by, why } = namedFields(input, names)
  checkPerson({ by, why })
  const named = row === undefined ? rows : rows === undefined ? [row] : undefined
  if (!Array.isArray(named) || named.length === 0 || !named.every((number) => Number.isInteger(number)))
    throw refused('Give the row as the report numbers it, "row": 17, or several, "rows": [17, 18].')
  if (named.length > mostResolved) throw refused(`Give at most ${mostResolved} rows at once.`)
  const decisions = [typeof exists === 'string' && exists !== '', absent === true, drop === true]
  if (decisions.filter(Boolean).length !== 1)
    throw refused('Give exactly one of "exists": "<id>", "absent": true and "drop": true.')
  if (typeof exists === 'string' && !/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(exists))
    throw refused(`${exists} is not a valid id; ids consist of letters, digits, _ and -.`)
  if (exists !== undefined && named.length > 1)
    throw refused('Give one row with "exists": each record has its own id.')
}

function checkPerson({ by, why }: { by?: unknown; why?: unknown }): void {
  if (typeof by !== 'string' || by.trim() === '') throw refused('Give your name as "by".')
  if (typeof why !== 'string' || why.trim() === '') throw refused('Give the reason as "why".')
}

function namedFields(input: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw refused(`Give one object with the fields ${names.join(', ')}.`)
  const unknown = Object.keys(input).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw refused(`There is no field ${unknown}; the fields are ${names.join(', ')}.`)
  return input as Record<string, unknown>
}
