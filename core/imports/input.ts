import { z } from 'zod'
import { durationInput } from '../runs/duration-input.ts'
import { identityInput } from '../runs/identity-input.ts'
import { encodings } from './csv/encoding.ts'
import { importKindNames } from './kinds.ts'
import { taxIdForms } from './mapping/tax-ids.ts'
import { dateOrders } from './cells/dates.ts'
import { dateCells } from './mapping/mapping.ts'
import { parseInput } from '../runs/parse-input.ts'

const limits = {
  /** This run's share of the worker's rate. */
  requestsPerSecond: z.number().positive().optional(),
  /** Changes in flight. */
  concurrency: z.int().min(1).max(100).optional(),
  /** The most changes to try; the others are reported as not tried. */
  maxChanges: z.int().min(0).optional(),
  /** The run ends when more changes have failed. */
  maxFailures: z.int().min(0).optional(),
  /** The share of recent outcomes that may be failures before the breaker opens. */
  maxFailureShare: z.number().min(0).max(1).optional(),
}

/** The input of `importFile`: one object, as the Temporal UI sends it. Paths are in the data folder. */
const importInput = z.strictObject({
  kind: z.enum(importKindNames),
  file: z.string().min(1),
  /** A stored mapping.json. */
  mapping: z.string().min(1).optional(),
  locale: z.string().optional(),
  decimal: z.enum([',', '.']).optional(),
  dates: z.enum(dateOrders).optional(),
  /** Of files that are not UTF-8. */
  encoding: z.enum(encodings).optional(),
  taxIds: z.enum(taxIdForms).optional(),
  /** Of a workbook; the first visible sheet by default. */
  sheet: z.string().optional(),
  headerRow: z.int().min(1).optional(),
  /** Rows that are not read; `hidden`: all hidden rows of a workbook. */
  skipRows: z.array(z.union([z.int().min(1), z.literal('hidden')])).optional(),
  /** Of a workbook: whether its real dates are right, where texts beside them raise a doubt. */
  dateCells: z.enum(dateCells).optional(),
  columns: z.array(z.string()).min(1).optional(),
  dryRun: z.boolean().optional(),
  onInvalid: z.enum(['stop', 'skip']).optional(),
  done: z.enum(['refuse', 'skip']).optional(),
  existing: z.enum(['refuse', 'skip', 'create']).optional(),
  /** Rows to send again although they are done; no other row is sent. */
  sendAgain: z.array(z.int().min(2)).min(1).optional(),
  /** Sends only rows that a person resolves as absent; what an earlier start has left unsent stays so. */
  onlyResolved: z.boolean().optional(),
  expectRows: z.int().min(0).optional(),
  expectTotals: z.record(z.string(), z.string()).optional(),
  /** How many distinct changes to send first, if there are more than 20. */
  canary: z.int().min(0).max(100).optional(),
  /** Sends nothing before an approval. Deletes always wait for one. */
  approval: z.boolean().optional(),
  /** The run waits for an approval after the canary. */
  confirmCanary: z.boolean().optional(),
  /** An operator is present: a breaker that has given up waits for them. */
  attended: z.boolean().optional(),
  /** How long the run waits for an operator. */
  approvalWait: durationInput.optional(),
  /** The delay between a lost request and its first lookup; default BILLING_SETTLE_SECONDS. */
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
