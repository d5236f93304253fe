import { changeRunFiles, type ChangeRun } from '../runs/run-files.ts'
import type { Execution } from '../runs/name.ts'
import type { ImportLimits, ImportSettings } from './input.ts'
import type { ImportKind, ImportKindName } from './kinds.ts'

/**
 * What an import does, decided once at its start and kept in its folder: names, counts and paths only, because it is
 * part of the workflow's history. Paths are relative to the data folder. What the input decides has the same names here.
 */
export interface ImportPlan extends ChangeRun, ImportSettings {
  /** The execution that decided it, so that a second attempt keeps the decision. */
  execution: Execution
  startedAt: string
  kind: ImportKindName
  /** What it does to which records of the service; `listed` as in `ImportKind`. */
  does: ImportKind['does']
  resource: string
  listed: boolean
  file: string
  mapping: string
  /** Equal for the same rows read the same way: such a run resumes; any other is new. */
  fingerprint: string
  verifyAfter: number
  limits: ImportLimits
  /** What was approved in this run before it was stopped or ended. */
  decided: { approval: boolean; canary: boolean }
}

/** The names in a run's folder. */
export const runFiles = {
  ...changeRunFiles,
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

/** Up to this many changes need no canary: they are quickly reviewed. */
const smallFile = 20

export const canarySize = ({ canary }: ImportPlan) => ({ size: canary, unlessAtMost: smallFile })
