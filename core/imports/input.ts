import { z } from 'zod'
import { durationInput } from '../runs/duration-input.ts'
import { identityInput } from '../runs/identity-input.ts'
import { importKindNames } from './kinds.ts'
import { dateOrders } from './cells/dates.ts'
import { parseInput } from '../runs/parse-input.ts'

const limits = {
  /** This run's share of the process's rate. */
  requestsPerSecond: z.number().positive().optional(),
  /** Changes on their way at once. */
  concurrency: z.int().min(1).max(100).optional(),
  /** The most changes that are tried; the rest is reported as not tried. */
  maxChanges: z.int().min(0).optional(),
  /** The run ends when more than this many have failed. */
  maxFailures: z.int().min(0).optional(),
  /** The share of the last outcomes that may have failed before the breaker opens. */
  maxFailureShare: z.number().min(0).max(1).optional(),
}

/** The input of `importFile`: one object, as the Temporal UI sends it. Paths lie in the data folder. */
const importInput = z.strictObject({
  kind: z.enum(importKindNames),
  file: z.string().min(1),
  /** A file with the lines of the records. */
  lines: z.string().min(1).optional(),
  /** A stored mapping.json. */
  mapping: z.string().min(1).optional(),
  locale: z.string().optional(),
  decimal: z.enum([',', '.']).optional(),
  dates: z.enum(dateOrders).optional(),
  columns: z.array(z.string()).min(1).optional(),
  dryRun: z.boolean().optional(),
  onInvalid: z.enum(['stop', 'skip']).optional(),
  done: z.enum(['refuse', 'skip']).optional(),
  existing: z.enum(['refuse', 'skip', 'create']).optional(),
  /** Rows to send once more although they are done; no other row is sent then. */
  sendAgain: z.array(z.int().min(2)).min(1).optional(),
  expectRows: z.int().min(0).optional(),
  expectTotals: z.record(z.string(), z.string()).optional(),
  /** How many unlike changes go first, of more than 20. */
  canary: z.int().min(0).max(100).optional(),
  /** Nothing is sent before somebody approves. Deletes always wait. */
  approval: z.boolean().optional(),
  /** After the canary the run waits for an approval. */
  confirmCanary: z.boolean().optional(),
  /** Somebody is there: a breaker that has given up waits for them. */
  attended: z.boolean().optional(),
  /** How long the run waits for a person. */
  approvalWait: durationInput.optional(),
  /** How long after a lost request the first lookup; BILLING_SETTLE_SECONDS where it is left out. */
  verifyAfter: durationInput.optional(),
  breakerWaits: z.array(durationInput).min(1).optional(),
  ...limits,
  identity: identityInput,
})
export type ImportInput = z.input<typeof importInput>
export type AskedImport = z.output<typeof importInput>

/** @throws {InvalidInput} */
export const parseImportInput = (input: unknown): AskedImport =>
  parseInput({ schema: importInput, input, taker: 'an import' })
