import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pageName } from './view/view.ts'
import type { Identity } from './identity.ts'
import { appendLines } from '../storage/durable.ts'
import { orMissing } from '../storage/system-errors.ts'

/** A write run, as all its steps know it. */
export interface ChangeRun {
  run: string
  /** The folder of its run files and reports, relative to the data folder. */
  folder: string
  identity: Identity
}

/** An operator's decision about a run or one of its rows. Name and reason are not verified. */
export interface Decision {
  at: string
  about: 'approval' | 'canary' | 'breaker' | 'limits' | 'row'
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
  why?: string
  /** All that went first failed, so nothing else was sent. */
  canary?: true
  at: string
}

/** How a run ends. */
export interface RunEnd {
  how: EndedNote['how']
  /** Why the run ended before everything was done, for people. */
  why?: string
  /** All that went first failed, so nothing else was sent. */
  canary?: true
  /**
   * The remaining changes are given up: an import reports them as not tried and frees them for other runs.
   */
  giveUp: boolean
}

/** The files in the folder of every write run. */
export const changeRunFiles = {
  plan: 'plan.json',
  decisions: 'decisions.jsonl',
  /** What the decisions on rows found. */
  resolutions: 'resolutions.jsonl',
  /** The changes as they were staged. */
  stagedChanges: 'staged-changes.jsonl',
  /** What was decided on some of them before they were staged. */
  decidedChanges: 'decided-changes.json',
  /** The claimed rows, and how often each was claimed. */
  claims: 'claims.log',
  ended: 'ended.json',
  report: 'report.json',
  /** The report for people. */
  page: pageName,
} as const

/**
 * Appends decisions to those of a run, durably. A decision that is already recorded, at any time, is not
 * added again.
 */
export async function recordDecisions(folder: string, decisions: readonly Decision[]): Promise<void> {
  const withoutTime = (decision: Decision) => JSON.stringify({ ...decision, at: '', confirmed: undefined })
  const known = new Set((await readDecisions(folder)).map(withoutTime))
  const added = decisions.filter((decision) => decision.about !== 'row' || !known.has(withoutTime(decision)))
  await appendLines(
    join(folder, changeRunFiles.decisions),
    added.map((decision) => JSON.stringify(decision)),
  )
}

export const readDecisions = (folder: string): Promise<Decision[]> =>
  readLines<Decision>(join(folder, changeRunFiles.decisions))

/** A row as a decision on it found it: both change when it is sent or closed again. */
export interface FoundRow {
  row: number
  claims: number
  closedAt: number | null
}

/**
 * Notes, durably and before a decision is applied, how it found its rows; returns what was noted first. So a step that is
 * repeated, also by a Reset, knows which rows have changed since.
 *
 * @param options.id the decision's
 */
export async function noteResolution(
  folder: string,
  { id, rows }: { id: string; rows: readonly FoundRow[] },
): Promise<ReadonlyMap<number, FoundRow>> {
  const path = join(folder, changeRunFiles.resolutions)
  const known = (await readLines<FoundRow & { id: string }>(path)).filter((one) => one.id === id)
  const noted = new Map(known.map((one): [number, FoundRow] => [one.row, one]))
  const added = rows.filter(({ row }) => !noted.has(row))
  await appendLines(
    path,
    added.map(({ row, claims, closedAt }) => JSON.stringify({ id, row, claims, closedAt })),
  )
  for (const one of added) noted.set(one.row, one)
  return noted
}

async function readLines<T>(path: string): Promise<T[]> {
  const text = await readText(path)
  // A line truncated by a crash was never confirmed to anyone.
  return (text ?? '').split('\n').flatMap((line): T[] => {
    try {
      return line === '' ? [] : [JSON.parse(line) as T]
    } catch {
      return []
    }
  })
}

/** Reads a JSON file of a run; undefined if it was never written. */
export async function readNote<T>(path: string): Promise<T | undefined> {
  const text = await readText(path)
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

const readText = (path: string) => orMissing(readFile(path, 'utf8'))
