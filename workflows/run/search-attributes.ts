import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common'
import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow'
import type { SearchAttributeName } from '../../core/runs/search-attributes.ts'

const verdictKey = defineSearchAttributeKey('Verdict', SearchAttributeType.KEYWORD)
const needsPersonKey = defineSearchAttributeKey('NeedsPerson', SearchAttributeType.BOOL)
const resourceKey = defineSearchAttributeKey('Resource', SearchAttributeType.KEYWORD_LIST)

interface Values {
  /** `proven`, `unproven`, `stopped` or `failed`. */
  verdict?: string
  /** Whether the run needs a person. */
  needsPerson?: boolean
  resources?: readonly string[]
}

/** Search attributes that find a run in the Temporal UI: `Verdict = "unproven"`, `NeedsPerson = true`. */
export interface SearchAttributes {
  /**
   * Sets the attributes that the server has, from the run's plan. Attributes outside this list, and all of them
   * before this call, are not set.
   */
  allow(plan: { searchAttributes?: readonly SearchAttributeName[] | undefined }): void
  set(values: Values): void
}

export function createSearchAttributes(): SearchAttributes {
  let allowed: readonly SearchAttributeName[] = []
  let needed: boolean | undefined
  return {
    allow: ({ searchAttributes }) => {
      allowed = searchAttributes ?? []
      // The UI copies the attributes of a run when it starts another like it: that verdict is not this run's.
      const isInherited = workflowInfo().typedSearchAttributes.get(verdictKey) !== undefined
      if (isInherited && allowed.includes('Verdict'))
        upsertSearchAttributes([{ key: verdictKey, value: null }])
    },
    set({ verdict, needsPerson, resources }) {
      if (allowed.length === 0) return
      const hasChanged = needsPerson !== undefined && needsPerson !== needed
      needed = needsPerson ?? needed
      const pairs = [
        ...(verdict === undefined ? [] : [{ key: verdictKey, value: verdict }]),
        ...(hasChanged ? [{ key: needsPersonKey, value: needsPerson }] : []),
        ...(resources === undefined ? [] : [{ key: resourceKey, value: [...resources] }]),
      ].filter(({ key }) => allowed.includes(key.name as SearchAttributeName))
      if (pairs.length > 0) upsertSearchAttributes(pairs)
    },
  }
}
