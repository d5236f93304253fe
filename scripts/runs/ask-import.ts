import { userInfo } from 'node:os'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { ImportProgress } from '../../workflows/import-details.ts'
import type { ImportHandle } from './start-import.ts'
import { formatTable } from '../terminal/format.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

/** Who sits here, as the machine knows them. */
export const personHere = (): string => userInfo().username

interface Question {
  handle: ImportHandle
  progress: ImportProgress
  terminal: Terminal
  settings: Settings
  signal: AbortSignal
}

/** Puts a run's question to the person at the terminal, or says where it can be answered. */
export async function answerImport(question: Question): Promise<void> {
  const { handle, progress, terminal, signal } = question
  const { waitingFor, run = handle.workflowId } = progress
  if (waitingFor === undefined) return
  const { what, count, until } = waitingFor
  const isOthers = what === 'approval' && count === undefined
  if (!terminal.isInteractive || isOthers) {
    const typed = count === undefined ? '' : ` --count ${count}`
    terminal.note(
      `The run waits until ${until}. Go on with: ${shell`connector approve ${run}`}${typed} --why "..."; end it with: ${shell`connector stop ${run}`}`,
    )
    return
  }
  if (what === 'canary') terminal.note(await describeSent(question))
  const said = await terminal.ask(toWords(question), { signal }).catch(() => '')
  if (signal.aborted) return
  const isYes = count === undefined ? /^(y|yes|s|si|sí)$/i.test(said) : said === String(count)
  if (!isYes) {
    terminal.note('Nothing more is sent.')
    return await handle.signal('stop')
  }
  const why = 'answered yes at the terminal'
  const approval = { by: personHere(), why, ...(count !== undefined && { count }) }
  await handle.executeUpdate('approve', { args: [approval] })
}

function toWords({ progress }: Question): string {
  const { waitingFor, counts, staged, kind } = progress
  if (waitingFor?.count !== undefined)
    return `Type ${waitingFor.count} to delete ${waitingFor.count} orders: `
  if (waitingFor?.what === 'breaker')
    return 'Too many rows failed, and every trial after that. Try the others all the same? [y/N] '
  const left = counts?.staged ?? staged?.open ?? 0
  return `Send the other ${left} ${kind}? [y/N] `
}

/** What was sent so far, and what the service answered that it stored. */
async function describeSent({ progress, settings }: Question): Promise<string> {
  const { run = '' } = progress
  const state = await openState({ folder: settings.dataDir, readOnly: true })
  try {
    const rows: string[][] = []
    for await (const row of state.ledger.rows({ run }))
      if (row.sentAt !== null && rows.length < mostShown)
        rows.push([String(row.row), row.state, row.body, row.answer ?? row.error ?? ''])
    if (rows.length === 0) return 'Nothing was sent yet.'
    return formatTable({ head: ['row', 'is', 'sent', 'stored'], rows })
  } finally {
    await state.close()
  }
}

const mostShown = 10
