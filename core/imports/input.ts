import { z } from 'zod'
import { durationInput } from '../runs/shared-inputs.ts'
import { identityInput } from '../runs/identity-input.ts'
import { parseInput } from '../runs/parse-input.ts'
import { type ImportKind, type ImportKindName, importKindNames } from './kinds.ts'
import { readingFields } from './mapping/mapping.ts'
import { type ChangeRun, changeRunFiles } from '../runs/run-files.ts'
import type { Execution } from '../runs/name.ts'

/** The limits of a run, which an operator may change while it runs. */
export const importLimits = z.object({
  /** This run's share of the worker's rate. */
  requestsPerSecond: z.number().positive().optional(),
  /** Changes in flight; default BILLING_CONCURRENCY. */
  concurrency: z.int().min(1).max(100).optional(),
  /** The most changes to try; the others are reported as not tried. */
  maxChanges: z.int().min(0).optional(),
  /** The run ends when more changes have failed. */
  maxFailures: z.int().min(0).optional(),
  /** The share of recent outcomes that may be failures before the breaker opens; default 0.5. */
  maxFailureShare: z.number().min(0).max(1).optional(),
})
export type ImportLimits = z.output<typeof importLimits>

/** What a plan keeps of its input, under the same names. */
export const importSettings = z.object({
  /** The only fields to send of an update. */
  columns: z.array(z.string()).min(1).optional(),
  dryRun: z.boolean().default(false),
  onInvalid: z.enum(['stop', 'skip']).default('stop'),
  done: z.enum(['refuse', 'skip']).default('refuse'),
  existing: z.enum(['refuse', 'skip', 'create']).default('refuse'),
  /** Rows to send again although they are done; no other row is sent. Empty: all rows, once. */
  sendAgain: z.array(z.int().min(2)).default([]),
  /** Sends only rows that a person resolves as absent; what an earlier start has left unsent stays so. */
  onlyResolved: z.boolean().default(false),
  /** Nothing is sent unless the file has so many rows, and columns that add up to these sums, in its notation. */
  expectRows: z.int().min(0).optional(),
  expectTotals: z.record(z.string(), z.string()).optional(),
  /** How many distinct changes to send first, if there are more than 20. */
  canary: z.int().min(0).max(100).default(3),
  /** Sends nothing before an approval. Deletes always wait for one. */
  approval: z.boolean().default(false),
  /** The run waits for an approval after the canary. */
  confirmCanary: z.boolean().default(false),
  /** An operator is present: a breaker that has given up waits for them instead of ending the run. */
  attended: z.boolean().default(false),
  /** How long the run waits for an operator. Two hours are long enough for a lunch; prices and people stay the same. */
  approvalWait: durationInput.default(2 * 3_600),
  /** The delay between a lost request and its first lookup; default BILLING_SETTLE_SECONDS. */
  verifyAfter: durationInput.optional(),
  breakerWaits: z.array(durationInput).min(1).optional(),
})
export type ImportSettings = z.output<typeof importSettings>

/** The input of `importFile`: one object, as the Temporal UI sends it. Paths are in the data folder. */
const importInput = z.strictObject({
  kind: z.enum(importKindNames),
  file: z.string().min(1),
  /** A stored mapping.json. */
  mapping: z.string().min(1).optional(),
  ...readingFields,
  ...importSettings.shape,
  ...importLimits.shape,
  identity: identityInput,
})
export type ImportInput = z.input<typeof importInput>
export type ParsedImport = z.output<typeof importInput>

/** @throws {InvalidInput} */
export const parseImportInput = (input: unknown): ParsedImport =>
  parseInput({ schema: importInput, input, taker: 'an import' })

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
