import type { Command } from 'commander'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listResources } from '../../core/billing/resources/lists.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { createCommandService } from '../../worker/service.ts'
import { SettingsError } from '../../worker/settings/environment.ts'
import { readSettings } from '../../worker/settings/settings.ts'
import { schedulesSchema } from '../schedules/file.ts'
import { RefusedError, toFailure } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

interface Question {
  question: string
  /** The answer that Enter gives. */
  proposed?: string
  hidden?: true
  /** Undefined: not an answer. */
  toValue?: (answer: string) => string | undefined
  /** What is one. */
  wanted?: string
}

/** By the variable that the answer sets, in the order of asking. */
const questions = {
  BILLING_BASE_URL: {
    question: 'Address of the service (https:// unless you type another):',
    toValue: (answer) => (answer.includes('://') ? answer : `https://${answer}`),
  },
  BILLING_TOKEN: { question: 'API token (not shown while you type):', hidden: true },
  BILLING_WORKSPACE: { question: 'Workspace, as in acc_1234:' },
  BILLING_TEST_MODE: {
    question: 'Test data or live data?',
    proposed: 'test',
    toValue: (answer) => ({ test: 'true', live: 'false' })[answer],
    wanted: 'answer test or live',
  },
} as const satisfies Record<string, Question>

type Name = keyof typeof questions
const names = Object.keys(questions) as Name[]

const dataFolder: Question = { question: 'Folder for exports, reports and state:', proposed: 'data' }

const zone: Question = {
  question: 'Time zone of the schedules:',
  proposed: new Intl.DateTimeFormat().resolvedOptions().timeZone,
  toValue: (answer) => (schedulesSchema.shape.timezone.safeParse(answer).success ? answer : undefined),
  wanted: 'give its name, as in America/Santiago',
}

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => init({ folder: process.cwd(), terminal }))
  addExamples(command, 'check', { init: 'asks for the service, a token and a workspace, and tries them' })
}

/** Writes `.env`, readable by this user alone, and a schedules file. Overwrites nothing. */
async function init({ folder, terminal }: { folder: string; terminal: Terminal }): Promise<void> {
  const files = { settings: join(folder, '.env'), schedules: join(folder, 'schedules.yaml') }
  const existing = Object.values(files).find((file) => existsSync(file))
  if (existing !== undefined)
    throw new RefusedError(`${existing} exists, and init overwrites nothing.`, {
      hint: 'Edit it, or move it away.',
    })
  if (!terminal.isInteractive)
    throw new RefusedError('init asks questions, and this is not a terminal.', {
      hint: 'Copy .env.example to .env and fill it in.',
    })
  const answers: Partial<Record<Name, string>> = {}
  let wrong: readonly Name[] = names
  while (wrong.length > 0) {
    for (const name of wrong) answers[name] = await ask(terminal, questions[name], answers[name])
    const problem = await findProblem(answers, folder)
    if (problem !== undefined) terminal.note(problem.message)
    wrong = problem?.names ?? []
  }
  terminal.note('The service accepts this token and workspace.')
  const settings = { ...answers, CONNECTOR_DATA_DIR: await ask(terminal, dataFolder) }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${quoted(value)}\n`)
  const schedules = toSchedules({ folder, timezone: await ask(terminal, zone) })
  await writeFile(files.settings, lines.join(''), { mode: 0o600, flag: 'wx' })
  await writeFile(files.schedules, schedules, { flag: 'wx' })
  terminal.result({
    document: { written: Object.values(files) },
    text: `Wrote .env and schedules.yaml.\nNext: ${connector`check`}`,
  })
}

/** @param before what was answered before, and Enter gives again */
async function ask(terminal: Terminal, of: Question, before?: string): Promise<string> {
  const { question, proposed = before, hidden, wanted, toValue = (answer: string) => answer } = of
  for (;;) {
    const shown = proposed === undefined ? question : `${question} [${hidden ? 'as before' : proposed}]`
    const typed = await terminal.ask(`${shown} `, hidden && { hidden })
    const answer = typed === '' && !process.stdin.readableEnded ? (proposed ?? '') : typed
    if (answer === '') throw new RefusedError('Without an answer, nothing was written.')
    // In quotes, the file takes every other character literally.
    const value = /['\p{Cc}]/u.test(answer) ? undefined : toValue(answer)
    if (value !== undefined) return value
    terminal.note(
      `"${hidden ? 'This' : answer}" cannot be used here${wanted === undefined ? '' : `: ${wanted}`}.`,
    )
  }
}

const quoted = (value: string) => (/^[\w.:/@+-]+$/.test(value) ? value : `'${value}'`)

/** Tries the answers on the service; if it does not take them, says why and which of them to ask for again. */
async function findProblem(env: Partial<Record<Name, string>>, cwd: string) {
  try {
    const service = createCommandService(readSettings({ env, cwd }))
    await service.list({ resource: listResources.plans, page: 1, pageSize: 1, tries: 1 })
    return undefined
  } catch (error) {
    const { name, message } = toFailure(error)
    return { message, names: toNames(error, name) }
  }
}

function toNames(error: unknown, failure: string): Name[] {
  if (error instanceof SettingsError) {
    const named = names.filter((name) => error.message.includes(name))
    return named.length > 0 ? named : names
  }
  if (failure === 'Unauthorized') return ['BILLING_TOKEN']
  return failure === 'Forbidden' ? ['BILLING_TOKEN', 'BILLING_WORKSPACE'] : ['BILLING_BASE_URL']
}

/** Beside the sources, or above the package's dist. */
const schemaFile = ['../../', '../../../']
  .map((up) => fileURLToPath(new URL(`${up}docs/schemas/schedules.json`, import.meta.url)))
  .find((file) => existsSync(file))

function toSchedules({ folder, timezone }: { folder: string; timezone: string }): string {
  const path = relative(folder, schemaFile ?? '')
  return `# yaml-language-server: $schema=${path.startsWith('..') ? schemaFile : path}
# Scheduled runs. To apply this file: ${connector`schedule apply`}
timezone: ${timezone}

schedules:
  # All lists, every night. The watch below notifies people if a list has no proven export by 06:30.
  export-nightly:
    workflow: exportData
    cron: 30 2 * * *
    provenWithin: 4h

  watch-exports:
    workflow: watchSchedules
    cron: 0 * * * *
`
}
