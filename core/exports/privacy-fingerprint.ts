import { createHmac } from 'node:crypto'
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
