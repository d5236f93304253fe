/** The changes of a run, each counted once, by state. */
export interface ReportCounts {
  /** Not sent yet, or proven absent. */
  staged: number
  done: number
  rejected: number
  /** Sent, with an unknown outcome. */
  unknown: number
  /** Needs a person's decision. */
  parked: number
  /** Deliberately not sent: an earlier run did it, or an operator dropped it. */
  skipped: number
  /** Left over when the run ended, or never staged because of a limit. */
  notTried: number
}

type Place = keyof ReportCounts

/** The labels of the counts for people, in display order. */
export const countLabels: Readonly<Record<Place, string>> = {
  done: 'done',
  staged: 'not sent yet',
  unknown: 'unknown',
  rejected: 'rejected',
  parked: 'parked',
  skipped: 'skipped',
  notTried: 'not tried',
}

export const places = Object.keys(countLabels) as Place[]

/** Why the others of a reason are not resumed whose canary failed. */
export const canaryFailed = 'all that went first for this reason failed (canary)'

/** Why what a person has decided is not proven: the service itself does not show it. Nobody is needed for it any more. */
export const resolvedByPerson = 'resolved by a person'

/** Outcomes whose label is more than their name in words. */
const outcomeLabels: Readonly<Record<string, string>> = {
  needsPerson: 'needs a person',
  noId: 'answered without an id',
  nothingGiven: 'nothing to change',
  resolved: resolvedByPerson,
  wouldResume: 'would be resumed',
}

/** The label of an outcome: `fellBack` → `fell back`. */
export const outcomeLabel = (outcome: string): string =>
  outcomeLabels[outcome] ?? outcome.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

/** A count with its label; nothing for 0. */
export const counted = (number: number, label: string): string[] =>
  number === 0 ? [] : [`${number} ${label}`]

export const sumOf = (counts: ReportCounts): number => places.reduce((sum, place) => sum + counts[place], 0)
