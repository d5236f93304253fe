import { createHmac } from 'node:crypto'
import { allResources, type ResourceName } from '../billing/resources/lists.ts'
import type { Destination, Publication } from '../destinations/destination.ts'
import { ForeignWarehouseError, OlderReadError } from '../destinations/errors.ts'
import type { State } from '../state/open.ts'
import { toFields } from '../tables/privacy.ts'
import type { ExportPlan } from './plan.ts'

/**
 * Fingerprint of the columns a run excludes and hashes, and of its hash key, which it does not reveal. Two reads
 * with the same fingerprint write the same values. Undefined where every value is written as it is.
 */
export function toPrivacyMark(options: {
  plan: Pick<ExportPlan, 'exclude' | 'hash'>
  hashKey: string
}): { exclude: string[]; hash: string[]; key: string } | undefined {
  const { plan, hashKey } = options
  const { exclude, hash } = plan
  if (exclude.length === 0 && hash.length === 0) return undefined
  const key = hash.length === 0 ? '' : createHmac('sha256', hashKey).update('the key of hashes').digest('hex')
  return { exclude: exclude.toSorted(), hash: hash.toSorted(), key }
}

/** How a plan writes the values of one resource. */
export function privacyOf(of: {
  plan: Pick<ExportPlan, 'exclude' | 'hash'>
  resource: ResourceName
  /** The fingerprint of the key that the read hashes with. */
  hashedWith: string | undefined
}): Pick<Publication, 'resource' | 'excluded' | 'hashed' | 'hashedWith'> {
  const { plan, resource, hashedWith } = of
  const excluded = toFields(allResources[resource], { names: plan.exclude, action: 'exclude' })
  const hashed = toFields(allResources[resource], { names: plan.hash, action: 'hash' })
  return { resource, excluded, hashed, ...(hashed.length > 0 && hashedWith !== undefined && { hashedWith }) }
}

/**
 * Rejects a run before it reads if a warehouse would reject what it publishes. One that cannot be asked now is asked when
 * the run publishes.
 * @throws {ForeignWarehouseError | OlderReadError}
 */
export async function refuseUnpublishable(options: {
  plan: ExportPlan
  hashKey: string
  state: Pick<State, 'now'>
  destinations: ReadonlyMap<string, Pick<Destination, 'checkBeforeRead'>>
}): Promise<void> {
  const { plan, hashKey, state, destinations } = options
  const hashedWith = toPrivacyMark({ plan, hashKey })?.key
  const scope = {
    testMode: plan.identity.mode === 'test',
    ...(plan.schema !== undefined && { schema: plan.schema }),
  }
  const reads = plan.resources.map((resource) => privacyOf({ plan, resource, hashedWith }))
  for (const name of plan.to)
    await destinations
      .get(name)
      ?.checkBeforeRead?.(scope, { reads, now: state.now() })
      .catch((error: unknown) => {
        if (error instanceof ForeignWarehouseError || error instanceof OlderReadError) throw error
      })
}
