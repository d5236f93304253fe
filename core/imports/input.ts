import { z } from 'zod'
import {
  approvalWaitInput,
  attendedInput,
  breakerWaitsInput,
  concurrencyInput,
  dryRunInput,
  identityInput,
  maxFailureShareInput,
  parseInput,
  rateInput,
  verifyAfterInput,
} from '../runs/inputs.ts'
import { type ImportKind, type ImportKindName, importKindNames } from './kinds.ts'
import { readingFields } from './mapping/mapping.ts'
import { type ChangeRun, reportFiles } from '../runs/run-notes.ts'
import type { Execution } from '../runs/name.ts'

/** The limits of a run, which an operator may change while it runs. */
export const importLimits = z.object({
  requestsPerSecond: rateInput,
  concurrency: concurrencyInput,
  maxChanges: z
    .int()
    .min(0)
    .optional()
    .meta({ help: 'the most changes to try; the others are reported as not tried' }),
  maxFailures: z
    .int()
    .min(0)
    .optional()
    .meta({ help: 'end the run when more changes than this have failed' }),
  maxFailureShare: maxFailureShareInput,
})
export type ImportLimits = z.output<typeof importLimits>

/** The fields of the input that the plan keeps, under the same names. */
export const importSettings = z.object({
  columns: z
    .array(z.string())
    .min(1)
    .optional()
    .meta({ flag: '--columns <fields>', help: 'the only fields of an update to send' }),
  dryRun: dryRunInput,
  onInvalid: z.enum(['stop', 'skip']).default('stop').meta({
    flag: '--on-invalid <action>',
    help: 'if the file has invalid rows: send nothing, or send the others',
  }),
  done: z.enum(['refuse', 'skip']).default('refuse').meta({
    flag: '--done <action>',
    help: 'if an earlier run has done some of the rows: refuse the file, or skip those rows',
  }),
  existing: z.enum(['refuse', 'skip', 'create']).default('refuse').meta({
    flag: '--existing <action>',
    help: 'if the service already has a retention with the same supplier, document and number',
  }),
  sendAgain: z.array(z.int().min(2)).default([]).meta({
    help: 'rows to send again, even if they are done; no other row is sent',
  }),
  onlyResolved: z.boolean().default(false).meta({
    help: 'send only rows that a person resolved as absent',
  }),
  expectRows: z
    .int()
    .min(0)
    .optional()
    .meta({ flag: '--expect-rows <n>', help: 'send nothing unless the file has this many rows' }),
  expectTotals: z.record(z.string(), z.string()).optional().meta({
    flag: '--expect-total <column=sum>',
    help: "send nothing unless a column adds up to this, in the file's notation; repeatable",
  }),
  canary: z
    .int()
    .min(0)
    .max(100)
    .default(3)
    .meta({ help: 'how many different rows to send first, if there are more than 20' }),
  approval: z.boolean().default(false).meta({
    flag: '--wait-for-approval',
    help: 'send nothing until somebody approves; deletes always wait',
  }),
  confirmCanary: z.boolean().default(false).meta({ help: 'wait for an approval after the canary' }),
  attended: attendedInput,
  approvalWait: approvalWaitInput,
  verifyAfter: verifyAfterInput,
  breakerWaits: breakerWaitsInput,
})
export type ImportSettings = z.output<typeof importSettings>

/** The input of `importFile`: one object, as the Temporal UI sends it. Paths are in the data folder. */
export const importInput = z.strictObject({
  kind: z.enum(importKindNames).meta({ help: 'what the rows are' }),
  file: z.string().min(1).meta({ help: 'a CSV file or an .xlsx workbook, in the data folder' }),
  mapping: z.string().min(1).optional().meta({ flag: '--mapping <file>', help: 'a stored mapping.json' }),
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
 * The plan of an import, decided once at its start: names, counts and paths only, because it is
 * part of the workflow's history. Paths are relative to the data folder. Fields of the input have the same names here.
 */
export interface ImportPlan extends ChangeRun, ImportSettings {
  job: 'import'
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

/** The lease of an import, and of its sender. */
export const leaseOf = (run: string) => `import ${run}`

/** The files that people read, in a run's folder. */
export const runFiles = {
  ...reportFiles,
  check: 'check.json',
  findings: 'findings.jsonl',
  results: 'results.csv',
  rejected: 'rejected.csv',
  parked: 'parked.csv',
  /** The file as a command was given it; only on the machine of that command. */
  origin: 'origin.json',
} as const

/** Up to this many changes need no canary: they are quickly reviewed. */
const smallFile = 20

export const canarySize = ({ canary }: ImportPlan) => ({ size: canary, unlessAtMost: smallFile })
