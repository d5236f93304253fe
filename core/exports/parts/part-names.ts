import type { PartFile } from '../../destinations/destination.ts'

/** The pseudo-table of what is not a valid record, published as `rejected.jsonl`. */
export const rejectedPart = 'rejected'
/** The pseudo-table of ids that do not exist, published as `missing.csv`. */
export const missingPart = 'missing'

/** Whether a part belongs to a real table of the resource. */
export const isOfTable = ({ table }: Pick<PartFile, 'table'>): boolean =>
  table !== rejectedPart && table !== missingPart
