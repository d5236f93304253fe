import {
  ActivityFailure,
  ApplicationFailure,
  SearchAttributeType,
  defineSearchAttributeKey,
} from '@temporalio/common'
import { upsertSearchAttributes, workflowInfo } from '@temporalio/workflow'
import type { Unopened } from '../../core/notifications/opened.ts'
import type { SearchAttributeName } from '../../core/runs/name.ts'
import { scheduledBy } from './notify.ts'
import { rethrowBug } from './unwrap-failure.ts'

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
  /** Marks a run as failed that cannot write its report, which would have said so. */
  failUnreported: (thrown: unknown) => never
  /** Marks a run that could not be opened as failed; its failure says which attributes the server has. */
  failUnopened: (thrown: unknown) => never
}

export function createSearchAttributes(): SearchAttributes {
  let allowed: readonly SearchAttributeName[] = []
  let needed: boolean | undefined
  const attributes: SearchAttributes = {
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
    failUnreported(thrown) {
      rethrowBug(thrown)
      attributes.set({ verdict: 'failed', needsPerson: true })
      throw thrown
    },
    failUnopened(thrown) {
      const cause = thrown instanceof ActivityFailure ? thrown.cause : undefined
      const details = cause instanceof ApplicationFailure ? cause.details : undefined
      attributes.allow({ ...(details?.[0] as Partial<Unopened> | undefined) })
      // A refusal did nothing, and who started the run sees it; nobody sees that of a scheduled run. The last run of an
      // import stands for the rows of all.
      const isRefusal = cause instanceof ApplicationFailure && cause.nonRetryable === true
      const isSeen = scheduledBy() === undefined && workflowInfo().workflowType !== 'importFile'
      attributes.set({ verdict: 'failed', needsPerson: !(isRefusal && isSeen) })
      throw thrown
    },
  }
  return attributes
}
