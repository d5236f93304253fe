import { z } from 'zod'
import { checkExport, exportInput, type ExportInput } from '../exports/input.ts'
import { parseInput, wrongType } from '../runs/inputs.ts'
import { type ParsedRecovery, recoveryInput } from '../recoveries/input.ts'

export const watchInput = z.strictObject({
  /** How far back the first check goes; each later one begins where the last one ended. */
  lookBackHours: z.number().positive().max(720).optional(),
})
export type WatchInput = z.input<typeof watchInput>

/** @throws {InvalidInput} */
export const parseWatchInput = (input: unknown): WatchInput =>
  parseInput({ schema: watchInput, input, taker: 'the watch' })

interface Schedulable {
  schema: z.ZodObject
  /** Checks that the schema cannot express. @throws with a sentence */
  check?: (input: never) => void
}

/** The workflows that a schedule may start, each with the worker's own check of its input. */
export const schedulableWorkflows = {
  exportData: {
    schema: exportInput,
    check: (input: ExportInput) => checkExport(input),
  },
  recoverSubscriptions: {
    schema: recoveryInput,
    check: ({ approval, dryRun }: ParsedRecovery) => {
      if (!approval || dryRun) return
      throw new RangeError(
        'a scheduled recovery has nobody to approve it; set "approval: false" and suitable bounds',
      )
    },
  },
  watchSchedules: { schema: watchInput },
} as const satisfies Record<string, Schedulable>

export type SchedulableName = keyof typeof schedulableWorkflows
export const schedulableNames = Object.keys(schedulableWorkflows) as [SchedulableName, ...SchedulableName[]]

export interface InputIssues {
  /** Paths begin at the input. */
  issues: readonly z.core.$ZodIssue[]
  /** A problem that the schema cannot express. */
  message?: string
  fields: string[]
}

export function checkRunInput(run: { workflow: SchedulableName; input: unknown }): InputIssues {
  const { schema, check }: Schedulable = schedulableWorkflows[run.workflow]
  const fields = Object.keys(schema.shape)
  const parsed = schema.safeParse(run.input, { error: wrongType })
  if (!parsed.success) return { issues: parsed.error.issues, fields }
  try {
    check?.(parsed.data as never)
    return { issues: [], fields }
  } catch (error) {
    return { issues: [], message: error instanceof Error ? error.message : String(error), fields }
  }
}
