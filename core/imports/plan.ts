import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import type { Expectations } from './expectations.ts'
import type { ImportKind, ImportKindName } from './kinds.ts'

/** The limits of a run, which an operator may change while it runs. */
export interface ImportLimits {
  requestsPerSecond?: number
  /** Changes in flight, within the worker's BILLING_CONCURRENCY. */
  concurrency?: number
  maxChanges?: number
  maxFailures?: number
  maxFailureShare?: number
}

/**
 * What an import does, decided once at its start and kept in its folder: names, counts and paths only, because it is
 * part of the workflow's history. Paths are relative to the data folder.
 */
export interface ImportPlan extends ChangeRun {
  /** The execution that decided it, so that a second attempt keeps the decision. */
  execution: { workflowId: string; runId: string }
  startedAt: string
  kind: ImportKindName
  /** What it does to which records of the service; `listed` as in `ImportKind`. */
  does: ImportKind['does']
  resource: string
  listed: boolean
  /** The file as the input names it; an upload is removed once the run has its copy. */
  source: string
  file: string
  mapping: string
  columns?: string[]
  /** Equal for the same rows read the same way: such a run resumes; any other is new. */
  fingerprint: string
  dryRun: boolean
  onInvalid: 'stop' | 'skip'
  done: 'refuse' | 'skip'
  existing: 'refuse' | 'skip' | 'create'
  /** Only these rows are sent, again. Empty: all rows, once. */
  sendAgain: number[]
  /** Only rows that a person resolves as absent are sent. */
  onlyResolved?: boolean
  expect: Expectations
  /** How many different changes are sent first, of files with more than `smallFile` rows. */
  canary: number
  /** Nothing is sent before an approval. */
  approval: boolean
  /** The run waits for an approval after the canary. */
  confirmCanary: boolean
  /** An operator is present: a breaker that has given up waits for them instead of ending the run. */
  attended: boolean
  /** How long the run waits for an operator. */
  approvalMs: number
  settleMs: number
  breakerWaitsMs?: number[]
  limits: ImportLimits
  /** What was approved in this run before it was stopped or ended. */
  decided: { approval: boolean; canary: boolean }
}

/**
 * The prefix of the folder into which a command copies an input; the run that takes it over removes the
 * folder.
 */
export const uploadPrefix = '.upload-'

/** The folder of an upload, relative to the data folder; undefined for a file that is none. */
export const uploadOf = (file: string): string | undefined => /^imports\/\.upload-[^/]+(?=\/)/.exec(file)?.[0]

/** The names in a run's folder. */
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
  /** The file as a command was given it; only on the machine of that command. */
  origin: 'origin.json',
  /** Exists once a command has shown the report of the finished run. */
  shown: 'shown',
} as const
