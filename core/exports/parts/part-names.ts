import type { PartFile } from '../../destinations/destination.ts'

/** The parts "table" of what is no record: it becomes `rejected.jsonl`. */
export const rejectedPart = 'rejected'
/** The parts "table" of ids that do not exist: it becomes `missing.csv`. */
export const missingPart = 'missing'

/** A part that belongs to a table of the resource. */
export const isOfTable = ({ table }: Pick<PartFile, 'table'>): boolean =>
  table !== rejectedPart && table !== missingPart
