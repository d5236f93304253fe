import type { ReportCounts } from '../../core/runs/counts.ts'
import type { Identity } from '../../core/runs/identity.ts'
import type { Pace } from './throughput.ts'
import { escapeMarkdown } from './markdown.ts'

// Words that the Current Details of all runs share, as markdown. The buttons are called what the Temporal UI calls them.

export function sayWhere(identity: Identity | undefined): string[] {
  if (identity === undefined) return []
  // Alone on its line: the UI takes what follows an address for a part of it.
  return [`**${identity.mode.toUpperCase()}** ${escapeMarkdown(identity.workspace)} at ${identity.baseUrl}`]
}

/** That the run waits for an approval, and which buttons answer. */
export function sayWaiting(question: {
  /** `import`. */
  what: string
  until: string
  /** What was done before, and what an approval would do. */
  why: string
  /** What has to be typed. */
  count?: number
}): string[] {
  const { what, until, why, count } = question
  const answer = `{"by": "your name", "why": "..."${count === undefined ? '' : `, "count": ${count}`}}`
  return [
    `The ${what} is **waiting for a person** until ${toMinute(until)}. ${why}`,
    `To approve: More Actions, **Send an Update**, **\`approve\`** with \`${answer}\`.`,
    'To end it: More Actions, **Send a Signal**, **`stop`**.',
  ]
}

export function sayPhase({ what, phase, nextAt }: { what: string; phase: string; nextAt?: string }): string {
  const next = nextAt === undefined ? '' : `, next at ${toMinute(nextAt, 'seconds')}`
  const unpause = phase === 'paused' ? ' More Actions, **Send a Signal**, **`unpause`** resumes it.' : ''
  return `The ${what} is **${phase}**${next}.${unpause}`
}

const places: readonly (readonly [keyof ReportCounts, string])[] = [
  ['done', 'done'],
  ['staged', 'not sent yet'],
  ['unknown', 'sent, outcome not known yet'],
  ['rejected', 'rejected'],
  ['parked', 'parked, for a person'],
  ['skipped', 'left out'],
  ['notTried', 'not tried'],
]

/** Where the changes of a run stand, as a table. `unit`: `rows`. */
export function sayCounts({ counts, unit }: { counts: ReportCounts | undefined; unit: string }): string[] {
  const rows = places.filter(([place]) => (counts?.[place] ?? 0) > 0)
  if (counts === undefined || rows.length === 0) return []
  // The UI sets the columns without a gap.
  const lines = rows.map(([place, name]) => `| ${name} | \u00a0\u00a0${counts[place]} |`)
  return [[`| | \u00a0\u00a0${unit} |`, '| --- | ---: |', ...lines].join('\n')]
}

/** How fast a run goes, and until when if it goes on so. */
export function sayPace({ pace, unit }: { pace: Pace | undefined; unit: string }): string[] {
  if (pace === undefined) return []
  const { perSecond, endsAt } = pace
  const speed = perSecond < 10 ? perSecond.toFixed(1) : String(Math.round(perSecond))
  return [`**${speed} ${unit} a second**; at that pace until about ${toMinute(endsAt)}.`]
}

/** `2026-11-21 21:31 UTC`, from an ISO time. */
export function toMinute(iso: string, to: 'minutes' | 'seconds' = 'minutes'): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, to === 'minutes' ? 16 : 19)} UTC`
}
