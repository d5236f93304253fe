import { toPrintable } from '../runs/view/printable.ts'
import { shell } from '../runs/view/shell.ts'

/** What people are told of, in one word. */
export type NotificationKind =
  | 'failed'
  | 'unproven'
  | 'parked'
  | 'breaker'
  | 'missed'
  | 'paused'
  | 'approval'
  | 'attention'
  | 'ended'

/** How much a receiver wants to hear; each level has all that the one before it has. */
export const notificationLevels = ['problems', 'decisions', 'all'] as const
export type NotificationLevel = (typeof notificationLevels)[number]

/** The least level that hears of it. */
const levelOf: Readonly<Record<NotificationKind, NotificationLevel>> = {
  failed: 'problems',
  unproven: 'problems',
  parked: 'problems',
  breaker: 'problems',
  missed: 'problems',
  paused: 'problems',
  approval: 'decisions',
  attention: 'decisions',
  ended: 'all',
}

/** Where notices go. The address is a secret: whoever knows it can write there. */
export interface Receiver {
  url: string
  level: NotificationLevel
}

export const wants = (level: NotificationLevel, kind: NotificationKind): boolean =>
  notificationLevels.indexOf(levelOf[kind]) <= notificationLevels.indexOf(level)

/** What at least one of the receivers wants to hear of. */
export function kindsFor(receivers: readonly Receiver[]): NotificationKind[] {
  const kinds = Object.keys(levelOf) as NotificationKind[]
  return kinds.filter((kind) => receivers.some(({ level }) => wants(level, kind)))
}

/** Something people should know. It is part of a workflow's history: ids, counts and sentences, no row's data. */
export interface Notification {
  /** The same however often it is sent, and for nothing else. */
  id: string
  kind: NotificationKind
  at: string
  run: {
    workflowId: string
    runId: string
    type: string
    /** The schedule that started it, and for when. */
    schedule?: string
    scheduledFor?: string
  }
  /** One or two sentences. */
  summary: string
  /** What to type next; without it, how to look at the run. */
  command?: string
  /** The run's own report, as its result has it. */
  report?: unknown
}

const headlines: Readonly<Record<NotificationKind, (run: string) => string>> = {
  failed: (run) => `${run} failed`,
  unproven: (run) => `${run} ended unproven`,
  parked: (run) => `${run} has rows that need a person`,
  breaker: (run) => `${run}: too many changes failed, the breaker is open`,
  missed: () => 'A scheduled export was missed',
  paused: () => 'A schedule paused itself',
  approval: (run) => `${run} waits for a person`,
  attention: (run) => `${run}: look at this`,
  ended: (run) => `${run} ended`,
}

export interface Sender {
  workspace: string
  mode: 'live' | 'test'
}

/** Where a run can be seen; undefined where nobody has said where the Temporal UI is. */
export interface Ui {
  url: string | undefined
  namespace: string
}

export function linkTo({ run, ui }: { run: Notification['run']; ui: Ui }): string | undefined {
  if (ui.url === undefined) return undefined
  const parts = [ui.namespace, 'workflows', run.workflowId, run.runId].map(encodeURIComponent)
  return `${ui.url.replace(/\/+$/, '')}/namespaces/${parts.join('/')}`
}

/**
 * The body of a notice: `text` as Slack, Mattermost and their likes show it, and all of it as fields for a program.
 */
export function toBody({ notice, sender, ui }: { notice: Notification; sender: Sender; ui: Ui }) {
  const { id, kind, at, run, summary, report = null } = notice
  const command = notice.command ?? shell`connector report ${run.workflowId}`
  const url = linkTo({ run, ui })
  const headline = headlines[kind](run.workflowId)
  const lines = [
    `*${escape(`${sender.mode.toUpperCase()} ${sender.workspace}: ${headline}`)}*`,
    escape(shorten(summary)),
    `\`${escape(command)}\``,
    ...(url === undefined ? [] : [`<${url}>`]),
  ]
  return {
    text: lines.join('\n'),
    event: { id, kind, level: levelOf[kind], at },
    workspace: sender.workspace,
    mode: sender.mode,
    run: { ...run, ...(url !== undefined && { url }) },
    summary,
    command,
    report,
  }
}

/**
 * The three characters that Slack's text gives a meaning, and a blank where Mattermost's Markdown would make a link or
 * load an image: neither format has an escape that the other does not show.
 */
const escape = (text: string): string =>
  toPrintable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/](?=[([:])/g, '] ')

/** Longer texts are cut by the receivers themselves, or refused. */
const longestSummary = 2_000
const shorten = (text: string): string =>
  text.length <= longestSummary ? text : `${text.slice(0, longestSummary).toWellFormed()} ...`
