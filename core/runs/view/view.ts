import type { Point } from './throughput.ts'

/** Something that a person should look at. */
export interface Problem {
  /** A sentence: what, and where it is not plain, what to do. */
  what: string
  /** More of the same: the first rows, the first findings. */
  details?: readonly string[]
}

export interface AccountTable {
  title: string
  head: readonly string[]
  /** Numbers stand to the right, with separators. */
  rows: readonly (readonly (string | number)[])[]
}

/**
 * The account of a run or of one of its exports, in plain words and numbers: all that its page shows, in the order in
 * which it is shown. Every text may hold anything; the page escapes it.
 */
export interface Account {
  /** `Export of customers`, `Import of retentions`. */
  title: string
  run: string
  identity: { mode: 'live' | 'test'; workspace: string; baseUrl?: string }
  verdict: {
    /** `proven`, `unproven`, `failed`, ... */
    word: string
    tone: 'good' | 'doubtful' | 'bad' | 'neutral'
    /** What follows from it, for somebody who has not read the manual. */
    meaning: string
  }
  problems: readonly Problem[]
  counts: readonly { name: string; value: number }[]
  /** How it went over time. */
  pace?: { unit: string; points: readonly Point[] }
  tables?: readonly AccountTable[]
  facts: readonly { name: string; value: string }[]
  /** Files, by their path relative to the page. */
  files?: readonly { name: string; about: string }[]
}

/** The name of the page, beside the manifest or report that it shows. */
export const pageName = 'report.html'
