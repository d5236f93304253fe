import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common'
import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow'
import type { MarkName } from '../../core/runs/search-attributes.ts'

const verdictKey = defineSearchAttributeKey('Verdict', SearchAttributeType.KEYWORD)
const needsPersonKey = defineSearchAttributeKey('NeedsPerson', SearchAttributeType.BOOL)
const resourceKey = defineSearchAttributeKey('Resource', SearchAttributeType.KEYWORD_LIST)

interface Marked {
  /** How the run ended: `proven`, `unproven`, `stopped`, `failed`. */
  verdict?: string
  /** Whether somebody has to look at it. */
  needsPerson?: boolean
  resources?: readonly string[]
}

/** What a run is found by in the Temporal UI: `Verdict = "unproven"`, `NeedsPerson = true`. */
export interface Marks {
  /** Which of them the server has, as the run's plan says; until then, and for the others, nothing is set. */
  listen(plan: { marks?: readonly MarkName[] | undefined }): void
  set(marked: Marked): void
}

export function openMarks(): Marks {
  let there: readonly MarkName[] = []
  let needed: boolean | undefined
  return {
    listen: ({ marks }) => {
      there = marks ?? []
      // The UI starts a workflow like another one with that one's attributes: its verdict is not this one's.
      const isInherited = workflowInfo().typedSearchAttributes.get(verdictKey) !== undefined
      if (isInherited && there.includes('Verdict')) upsertSearchAttributes([{ key: verdictKey, value: null }])
    },
    set({ verdict, needsPerson, resources }) {
      if (there.length === 0) return
      const isNews = needsPerson !== undefined && needsPerson !== needed
      needed = needsPerson ?? needed
      const pairs = [
        ...(verdict === undefined ? [] : [{ key: verdictKey, value: verdict }]),
        ...(isNews ? [{ key: needsPersonKey, value: needsPerson }] : []),
        ...(resources === undefined ? [] : [{ key: resourceKey, value: [...resources] }]),
      ].filter(({ key }) => there.includes(key.name as MarkName))
      if (pairs.length > 0) upsertSearchAttributes(pairs)
    },
  }
}
