import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DemoContext } from './demo-context.ts'
import type { Sandbox } from '../../sandbox/sandbox.ts'
import { followImport } from '../runs/follow-changes.ts'
import { stopOnInterrupt } from '../runs/run-to-end.ts'
import { uploadImport } from '../runs/upload-import.ts'
import type { ImportOrder } from '../runs/upload-import.ts'
import { previewImport } from '../runs/preview-import.ts'
import { startImport } from '../runs/run-import.ts'

/** The number of valid rows, enough for a canary. */
const validRows = 24
const post = 'POST /retentions/'

/** An import that is ready to send: its file is checked and in the data folder, and its run has a name. */
export type DemoImport = Awaited<ReturnType<typeof prepareDemoImport>>

/** Prepares a realistic file: valid rows, a date that does not exist, and a duplicate row. */
export async function prepareDemoImport({ settings, terminal }: Omit<DemoContext, 'sandbox' | 'session'>) {
  // Uses numbers that no earlier demo on this data folder has used: the ledger would refuse to send them again.
  const first = Math.floor(Date.now() / 1000)
  const file = join(settings.dataDir, 'retentions.csv')
  await writeFile(file, toCsv(first))
  const order: ImportOrder = {
    file,
    reading: [],
    mapping: {},
    input: { kind: 'retentions', onInvalid: 'skip' },
    yes: true,
    local: true,
    detach: false,
  }
  terminal.note(`Importing ${file}, which has three invalid rows:`)
  const uploaded = await uploadImport({ settings, order })
  await previewImport({ settings, order, uploaded, terminal })
  return { first, order, uploaded }
}

/** Imports the file while a response and a request are lost. True if the run is proven and the sandbox agrees. */
export async function runDemoImport({
  demo: { first, order, uploaded },
  sandbox,
  session,
  settings,
  terminal,
}: DemoContext & { demo: DemoImport }): Promise<boolean> {
  // Other clients keep creating retentions, but none deletes ours.
  sandbox.control.setDrift({ drift: { retentions: { perSecond: { inserts: 10, updates: 10 } } } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'done', on: post, requests: [8] } })
  sandbox.control.addFault({ fault: { kind: 'reset', effect: 'none', on: post, requests: [12] } })
  const { handle } = await startImport({ settings, terminal, order, session, uploaded })
  const stopNote = 'everything that was sent is on record'
  using _interrupt = stopOnInterrupt({ session, handle, terminal, stopNote })
  terminal.note(
    'Two connections break: one after the service created the retention, one before. To the client, both look the same.',
  )
  const { verdict } = await followImport({ session, handle, terminal, settings })
  const times = timesOf(sandbox, first)
  const once = times.filter((count) => count === 1).length
  terminal.note(
    `The sandbox has ${once} of the ${validRows} valid rows exactly once, and ${times.length - once} not once.`,
  )
  return verdict === 'proven' && once === validRows
}

function toCsv(first: number): string {
  const header = 'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity'
  const row = (index: number, date = `2026-03-${String(1 + index).padStart(2, '0')}`) =>
    `sup_${index % 5},${index % 3 === 0 ? 8 : 7},${first + index},${date},${100 + index}.50,Honorarios,${100 + index}.50,1`
  const good = Array.from({ length: validRows }, (_, index) => row(index))
  const bad = [row(validRows, '2026-02-30'), row(validRows + 1), row(validRows + 1)]
  return [header, ...good, ...bad, ''].join('\n')
}

/** Counts how often the service has each of the valid rows. */
function timesOf(sandbox: Sandbox, first: number): number[] {
  const times = Array.from({ length: validRows }, () => 0)
  for (const text of sandbox.control.records({ resource: 'retentions' })) {
    const { number } = JSON.parse(text) as { number: number }
    const index = number - first
    if (times[index] !== undefined) times[index] += 1
  }
  return times
}
