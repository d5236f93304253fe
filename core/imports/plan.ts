import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import type { Expectations } from './expectations.ts'
import type { ImportKindName } from './kinds.ts'

/** The bounds of a run that people may change while it runs. */
export interface ImportLimits {
  requestsPerSecond?: number
  /** Changes on their way at once, within the worker's own BILLING_CONCURRENCY. */
  concurrency?: number
  maxChanges?: number
  maxFailures?: number
  maxFailureShare?: number
}

/**
 * What an import does, settled once at its start and kept in its folder: names, counts and paths only, because it
 * is part of the workflow's history. Paths are relative to the data folder.
 */
export interface ImportPlan extends ChangeRun {
  /** The execution that settled it, so that a second try of this settles nothing anew. */
  execution: { workflowId: string; runId: string }
  startedAt: string
  kind: ImportKindName
  /** The file as the input names it; where it was handed in, it is gone once the run has its copy. */
  source: string
  file: string
  lines?: string
  mapping: string
  columns?: string[]
  /** The same for the same rows read the same way: such a run goes on, any other is one of its own. */
  fingerprint: string
  dryRun: boolean
  onInvalid: 'stop' | 'skip'
  done: 'refuse' | 'skip'
  existing: 'refuse' | 'skip' | 'create'
  /** Only these rows, once more. Empty: all rows, once. */
  sendAgain: number[]
  expect: Expectations
  /** How many unlike changes go first; of files of more than `smallFile` rows only. */
  canary: number
  /** Nothing is sent before a person approves. */
  approval: boolean
  /** A person is asked when the canary was sent. */
  confirmCanary: boolean
  /** A person is there: a breaker that has given up waits for them instead of ending the run. */
  attended: boolean
  /** How long the run waits for a person. */
  approvalMs: number
  settleMs: number
  breakerWaitsMs?: number[]
  limits: ImportLimits
  /** What a person has already said to this run before it was stopped or ended. */
  decided: { approval: boolean; canary: boolean }
}

/** How the folder begins that a command puts an input into; whoever takes it over removes it. */
export const handedIn = '.handed-in-'

/** The names of what lies in a run's folder. */
export const runFiles = {
  ...changeRunFiles,
  input: 'input',
  check: 'check.json',
  staged: 'staged.json',
  audit: 'audit.json',
  findings: 'findings.jsonl',
  results: 'results.csv',
  rejected: 'rejected.csv',
  parked: 'parked.csv',
  /** There when a command has shown the report of the finished run. */
  shown: 'shown',
} as const
