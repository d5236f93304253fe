import { toPrintable } from '../runs/view/format.ts'
import { connector } from '../runs/view/shell.ts'

/** The levels of a channel; each includes the previous ones. */
export const notificationLevels = ['problems', 'decisions', 'all'] as const
export type NotificationLevel = (typeof notificationLevels)[number]

/** The lowest level that includes the kind. */
const levelOf = {
  failed: 'problems',
  unproven: 'problems',
  parked: 'problems',
  doubled: 'problems',
  breaker: 'problems',
  missed: 'problems',
  paused: 'problems',
  approval: 'decisions',
  attention: 'decisions',
  ended: 'all',
} as const satisfies Record<string, NotificationLevel>

/** The kinds of events that people are notified of. */
export type NotificationKind = keyof typeof levelOf

/** A channel of NOTIFY_URL. The URL is a secret: anyone who knows it can post there. */
export interface NotificationChannel {
  url: string
  level: NotificationLevel
}

export const accepts = (level: NotificationLevel, kind: NotificationKind): boolean =>
  notificationLevels.indexOf(levelOf[kind]) <= notificationLevels.indexOf(level)

/** The kinds that at least one channel accepts. */
export function kindsFor(channels: readonly NotificationChannel[]): NotificationKind[] {
  return Object.keys(levelOf)
    .filter(isNotificationKind)
    .filter((kind) => channels.some(({ level }) => accepts(level, kind)))
}

const isNotificationKind = (name: string): name is NotificationKind => Object.hasOwn(levelOf, name)

/** An event to notify people of. It is part of a workflow's history: ids, counts and sentences, no data of rows. */
export interface Notification {
  /** Unique to the event, and the same for every delivery attempt. */
  id: string
  kind: NotificationKind
  at: string
  run: {
    workflowId: string
    runId: string
    type: string
    /** The schedule that started the run, and the scheduled time. */
    schedule?: string
    scheduledFor?: string
  }
  /** One or two sentences. */
  summary: string
  /** The command to run next. Default: the command that shows the run. */
  command?: string
  /** The run's own report, as in its result. */
  report?: unknown
}

const headlines: Readonly<Record<NotificationKind, (run: string) => string>> = {
  failed: (run) => `${run} failed`,
  unproven: (run) => `${run} ended unproven`,
  parked: (run) => `${run} has rows that need a person`,
  doubled: (run) => `${run}: the service has done a change more than once`,
  breaker: (run) => `${run}: too many changes failed, the breaker is open`,
  missed: () => 'A scheduled export was missed',
  paused: () => 'A schedule paused itself',
  approval: (run) => `${run} is waiting for a person`,
  attention: (run) => `${run} needs attention`,
  ended: (run) => `${run} ended`,
}

export interface Sender {
  workspace: string
  mode: 'live' | 'test'
}

/** The Temporal UI; `url` is undefined if its address is unknown. */
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
 * The body of a notification: `text` for Slack, Mattermost and similar services, and all fields for programs.
 */
export function toBody({ notification, sender, ui }: { notification: Notification; sender: Sender; ui: Ui }) {
  const { id, kind, at, run, summary, report = null } = notification
  const command = notification.command ?? connector`run report ${run.workflowId}`
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
 * Escapes the three characters that are special in Slack, and inserts a space where Mattermost's Markdown would
 * make a link or load an image: each format would display the other's escapes.
 */
const escape = (text: string): string =>
  toPrintable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll(/](?=[([:])/g, '] ')

/** Channels shorten or refuse longer texts. */
const maxSummaryLength = 2_000
const shorten = (text: string): string =>
  text.length <= maxSummaryLength ? text : `${text.slice(0, maxSummaryLength).toWellFormed()} ...`
