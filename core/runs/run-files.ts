import { readFile } from 'node:fs/promises'
import { pageName } from './view/view.ts'
import type { Identity } from './identity.ts'
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

/** Reads a JSON file of a run; undefined if it was never written. */
export async function readNote<T>(path: string): Promise<T | undefined> {
  const text = await readText(path)
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

const readText = (path: string) => orMissing(readFile(path, 'utf8'))
