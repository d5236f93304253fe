import type { z } from 'zod'
import { watchInput } from './watch-input.ts'
import { exportInput, type ExportInput } from '../exports/input.ts'
import { checkFilters } from '../billing/resources/filters.ts'
import { listResources } from '../billing/resources/lists.ts'
import { listNames } from '../billing/resources/resource.ts'
import { type AskedRecovery, recoveryInput } from '../recoveries/input.ts'
import { checkPrivacy } from '../tables/privacy.ts'

interface Schedulable {
  schema: z.ZodObject
  /** What the schema can't say: throws a sentence. */
  check?: (input: never) => void
}

/** What a schedule may start, and the input that each of it takes: the worker's own check, before the night comes. */
export const schedulable = {
  exportData: {
    schema: exportInput,
    check: ({ resources = [...listNames], filters = {}, exclude = [], hash = [] }: ExportInput) => {
      for (const name of resources) checkFilters({ resource: listResources[name], filters })
      // The worker has the key.
      checkPrivacy(Object.values(listResources), { exclude, hash, hashKey: 'of the worker' })
    },
  },
  recoverSubscriptions: {
    schema: recoveryInput,
    check: ({ approval, dryRun }: AskedRecovery) => {
      if (approval === false || dryRun === true) return
      throw new RangeError(
        'at night nobody approves; say "approval: false", and set bounds that you can live with',
      )
    },
  },
  watchSchedules: { schema: watchInput },
} as const satisfies Record<string, Schedulable>

export type SchedulableName = keyof typeof schedulable
export const schedulableNames = Object.keys(schedulable) as [SchedulableName, ...SchedulableName[]]

export interface InputIssues {
  /** As zod has them; paths begin at the input. */
  issues: readonly z.core.$ZodIssue[]
  /** What the schema can't say. */
  says?: string
  fields: string[]
}

export function checkRunInput(run: { workflow: SchedulableName; input: unknown }): InputIssues {
  const { schema, ...more }: Schedulable = schedulable[run.workflow]
  const fields = Object.keys(schema.shape)
  const parsed = schema.safeParse(run.input)
  if (!parsed.success) return { issues: parsed.error.issues, fields }
  try {
    more.check?.(parsed.data as never)
    return { issues: [], fields }
  } catch (error) {
    return { issues: [], says: error instanceof Error ? error.message : String(error), fields }
  }
}
