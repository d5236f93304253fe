import { countLabels, places, type ReportCounts } from './counts.ts'
import type { Cell, Tone } from './format.ts'
import { connector } from './shell.ts'

/** Something that needs a person's attention. */
export interface Problem {
  text: Sentence
  /** More of the same: the first rows, the first findings. */
  details?: readonly string[]
}

export interface Table {
  title: string
  head: readonly string[]
  /** Numbers are right-aligned, with separators. */
  rows: readonly (readonly Cell[])[]
  /** The tone of each column that a page also draws, as its share of a bar beside the row. */
  tones?: readonly (Tone | undefined)[]
}

/** A table, unless it has no rows. */
export const filled = (table: Table): Table[] => (table.rows.length === 0 ? [] : [table])

export interface Fact {
  name: string
  /** Several are one line. */
  value: Cell | readonly Cell[]
}

/** A part of a page about one thing, such as a list. */
export interface Sheet {
  title: string
  facts: readonly Fact[]
  /** Counts side by side, such as those of months. */
  bars?: { title: string; of: readonly { name: string; value: number }[] }
  tables: readonly Table[]
}

/** One count. Counts with a tone share a bar. */
export interface Count {
  name: string
  value: number
  tone?: Tone
}

/** A next step for a person, and its command. */
export interface NextStep {
  text: string
  command?: string
}

/**
 * A run, or one published export, in plain words and numbers, in display order. Each job builds one; the
 * Temporal UI (markdown.ts), the page (html.ts) and the terminal (text.ts) render it and know no job. Texts
 * are untrusted; the renderers escape them. Plain data, because steps return it: counts and row numbers, no
 * contents.
 */
export interface View {
  /** `Export of customers`, `Import of retentions`. */
  title: string
  run?: string | undefined
  identity?: { mode: 'live' | 'test'; workspace: string; baseUrl?: string } | undefined
  /** How it ended. */
  verdict?: {
    /** `proven`, `unproven`, `failed` ... */
    word: string
    tone: Tone
    /** The outcome in figures, the headline of the page: `24 of 27 rows are done`. */
    headline: string
    /** The meaning for someone who has not read the manual. */
    meaning: string
  }
  /** The result in one sentence, for the terminal and the Temporal UI. */
  summary?: string
  /** The progress of an active run. */
  status?: readonly Sentence[]
  problems?: readonly Problem[]
  /** Worth knowing, but nothing for a person to do. */
  notices?: readonly Problem[]
  next?: readonly NextStep[]
  counts?: readonly Count[]
  /** The plural noun for what is counted. */
  unit?: string
  tables?: readonly Table[]
  /** Shown on a page instead of `tables`. */
  pageTables?: readonly Table[]
  /** What only a page shows. */
  sheets?: readonly Sheet[]
  checks?: readonly NextStep[]
  facts?: readonly Fact[]
  /** What the result rests on. Pages fold it. */
  evidence?: readonly Fact[]
  /** Files, by their path relative to the folder. */
  files?: readonly { name: string; about: string }[]
  /** Where the files are. */
  folder?: string | undefined
  /** The path of the page. */
  page?: string | undefined
  /** What the buttons of the Temporal UI do. */
  controls?: readonly Sentence[]
}

/** The name of the page, which is beside the manifest or report that it shows. */
export const pageName = 'report.html'

const tones: Readonly<Record<keyof ReportCounts, Tone>> = {
  done: 'good',
  staged: 'neutral',
  unknown: 'doubtful',
  rejected: 'bad',
  parked: 'doubtful',
  skipped: 'neutral',
  notTried: 'neutral',
}

/** The nonzero counts of a write run. */
export const toCounts = (counts: ReportCounts | undefined): Count[] =>
  places.flatMap((place) => {
    const value = counts?.[place] ?? 0
    return value === 0 ? [] : [{ name: countLabels[place], value, tone: tones[place] }]
  })

/** Part of a sentence: plain text, emphasized text, or text to type exactly as it is. */
type Piece = string | { strong: string } | { code: string }

/** Text for people that each renderer formats in its own way. Plain data, so that steps can return it. */
export type Sentence = string | readonly Piece[]

export const strong = (text: string): Piece => ({ strong: text })
export const code = (text: string): Piece => ({ code: text })

/** sentence`The run is ${strong(phase)}.` */
export const sentence = (
  texts: TemplateStringsArray,
  ...pieces: readonly (Piece | number)[]
): readonly Piece[] =>
  texts.flatMap((text, at) => {
    const piece = pieces[at]
    return piece === undefined ? [text] : [text, typeof piece === 'number' ? String(piece) : piece]
  })

export const piecesOf = (from: Sentence): readonly Piece[] => (typeof from === 'string' ? [from] : from)

/** For a run whose files several workers keep in their file store. */
export const toFetch = (run: string): NextStep => ({
  text: 'to have its files in the data folder of your machine, where the paths here begin',
  command: connector`run report ${run}`,
})
