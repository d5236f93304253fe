import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

const questions = [
  { name: 'BILLING_BASE_URL', question: 'Address of the service (https://...): ', valid: isAddress },
  { name: 'BILLING_TOKEN', question: 'API token (shown while you type): ', valid: isWord },
  { name: 'BILLING_WORKSPACE', question: 'Workspace (as in acc_1234): ', valid: isWord },
] as const

const schedules = `# Scheduled runs. Edit this file and apply it: connector schedule apply
# docs/schedules.md describes every field.
timezone: America/Santiago

schedules:
  # All lists, every night. Reported by the watch below if there is no proven export by 06:30.
  export-nightly:
    workflow: exportData
    input:
      to: [csv]
    cron: 30 2 * * *
    provenWithin: 4h

  watch-exports:
    workflow: watchSchedules
    cron: 0 * * * *
`

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => init({ folder: process.cwd(), terminal }))
  addExamples(command, 'inspect', { init: 'asks three questions; then run `connector check`' })
}

/** Writes `.env`, readable by this user only, and a schedules file. Never changes an existing file. */
export async function init({ folder, terminal }: { folder: string; terminal: Terminal }): Promise<void> {
  const files = { env: join(folder, '.env'), schedules: join(folder, 'schedules.yaml') }
  if (existsSync(files.env))
    throw new RefusedError(`${files.env} exists.`, { hint: 'Edit it, or move it away. Nothing was changed.' })
  if (!terminal.isInteractive)
    throw new RefusedError('init asks three questions, and this is not a terminal.', {
      hint: 'Copy .env.example to .env and fill it in.',
    })
  const lines: string[] = []
  for (const { name, question, valid } of questions) {
    const answer = await terminal.ask(question)
    if (!valid(answer))
      throw new RefusedError(`"${name === 'BILLING_TOKEN' ? 'This' : answer}" is not valid for ${name}.`, {
        hint: 'Nothing was written. Run init again.',
      })
    lines.push(`${name}=${answer}`)
  }
  await writeFile(files.env, `${lines.join('\n')}\n`, { mode: 0o600, flag: 'wx' })
  const written = [files.env]
  if (!existsSync(files.schedules)) {
    await writeFile(files.schedules, schedules, { flag: 'wx' })
    written.push(files.schedules)
  }
  terminal.result({
    document: { written },
    text: `${written.map((file) => `Wrote ${file}`).join('\n')}\nNext: connector check`,
  })
}

function isAddress(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}

/** Whether a .env file reads the text unchanged. */
function isWord(text: string): boolean {
  return /^[^\s"'`#\\$=]+$/.test(text)
}
