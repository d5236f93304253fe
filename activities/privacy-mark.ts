import { createHmac } from 'node:crypto'
import type { ExportPlan } from './export-plan.ts'

/**
 * What a run leaves out and hashes, and a mark of the key it hashes with that does not tell the key: two reads with
 * the same mark write the same values. Undefined where every value is written as it is.
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
