/** Each change of a run, counted once, by its state. */
export interface ReportCounts {
  /** Never sent so far, or proven absent. */
  staged: number
  done: number
  rejected: number
  /** Sent, and its outcome is not known. */
  unknown: number
  /** Only a person can find out or decide. */
  parked: number
  /** Not sent on purpose: an earlier run did it, or a person dropped it. */
  skipped: number
  /** Left when the run ended, and never staged because of a bound. */
  notTried: number
}

type Place = keyof ReportCounts

/** What the counts are called wherever people read them, in the order in which they are shown. */
export const countLabels: Readonly<Record<Place, string>> = {
  done: 'done',
  staged: 'not sent yet',
  unknown: 'unknown',
  rejected: 'rejected',
  parked: 'parked: needs a person',
  skipped: 'skipped',
  notTried: 'not tried',
}

export const places = Object.keys(countLabels) as Place[]

/** Outcomes whose label is not just their name in words. */
const outcomeLabels: Readonly<Record<string, string>> = {
  needsPerson: 'needs a person',
  noId: 'answered without an id',
  nothingGiven: 'nothing to change',
  resolved: 'resolved by a person',
  wouldResume: 'would be resumed',
}

/** The label of an outcome: `fellBack` → `fell back`. */
export const outcomeLabel = (outcome: string): string =>
  outcomeLabels[outcome] ?? outcome.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

export const sumOf = (counts: ReportCounts): number => places.reduce((sum, place) => sum + counts[place], 0)
