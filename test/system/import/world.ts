import type { Client } from '@temporalio/client'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import type { Activities } from '../../../activities/index.ts'
import type { ImportResult } from '../../../core/imports/view.ts'
import type { ImportInput } from '../../../core/imports/input.ts'
import type { importFile } from '../../../workflows/import-file.ts'
import type { World } from '../export/world.ts'

/** Names that no other world has, so that a search for them finds only these rows. */
export const retentionsCsv = (count: number, { from = 1, mark = 'Honorarios' } = {}): string => {
  const rows = Array.from({ length: count }, (_, index) => {
    const number = from + index
    const cells = [`sup_${number % 7}`, 7 + (number % 3), number, '2026-03-01', `${number}.50`]
    return [...cells, `${mark} ${number}`, '1500.10', 2].join(',')
  })
  const header = 'supplier,document,number,date,total,lines.1.name,lines.1.amount,lines.1.quantity'
  return [header, ...rows, ''].join('\n')
}

export const addonsCsv = (count: number): string =>
  [
    'name,description,currency,amount',
    ...Array.from({ length: count }, (_, index) => `Addon ${index + 1},x,CLP,${index + 1}.25`),
    '',
  ].join('\n')

export const ordersCsv = (ids: readonly (string | number)[]): string => ['id', ...ids, ''].join('\n')

/** Puts a file into the data folder, as somebody who starts a run from the UI does; gives its path in there. */
export async function putFile(world: World, text: string, name = 'rows.csv'): Promise<string> {
  await mkdir(join(world.dataDir, 'inbox'), { recursive: true })
  await writeFile(join(world.dataDir, 'inbox', name), text)
  return join('inbox', name)
}

/** Requests to make something that the service has had so far. */
export const posts = (world: World): number =>
  world.sandbox.control.requests().filter(({ method }) => method === 'POST').length

let runs = 0

/** Settles within milliseconds, and is not stopped by what the tests make fail. */
export const quick = { verifyAfter: 0.05, maxFailureShare: 1 } as const

export async function startImport(options: {
  client: Client
  world: World
  input: ImportInput
  name?: string
}) {
  runs += 1
  const { client, world, input, name = `import-${world.workspace}-${runs}` } = options
  return client.workflow.start<typeof importFile>('importFile', {
    workflowId: name,
    taskQueue: world.taskQueue,
    args: [input],
  })
}

/** How often each of the first rows of `retentionsCsv` or `addonsCsv` is in the service, late effects included. */
export function timesOf(world: World, kind: 'retentions' | 'addons', rows: number): number[] {
  world.sandbox.control.landLateEffects()
  const counts = new Map<string, number>()
  for (const text of world.sandbox.control.records({ resource: kind })) {
    const record = JSON.parse(text) as { name?: string; lines?: { name?: string }[] }
    const name = (kind === 'addons' ? record.name : record.lines?.[0]?.name) ?? ''
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const word = kind === 'addons' ? 'Addon' : 'Honorarios'
  return Array.from({ length: rows }, (_, index) => counts.get(`${word} ${index + 1}`) ?? 0)
}

export const once = (rows: number): number[] => Array.from({ length: rows }, () => 1)

export async function sheetOf(result: ImportResult, sheet: 'results' | 'rejected' | 'parked') {
  const text = await readFile(result.files[sheet] ?? '', 'utf8')
  return parse<Record<string, string>>(text, { columns: true })
}

/**
 * What the Reset button of the UI does: keeps the history up to the first workflow task, the last one, or the one before a
 * step, and repeats the rest. Gives the id of the execution that does.
 */
export async function reset(of: {
  client: Client
  workflowId: string
  to?: 'first' | 'last' | keyof Activities
}): Promise<string> {
  const { client, workflowId, to = 'first' } = of
  const handle = client.workflow.getHandle(workflowId)
  const { runId } = await handle.describe()
  const events = (await handle.fetchHistory()).events ?? []
  const step = events.findIndex(
    ({ activityTaskScheduledEventAttributes: scheduled }) => scheduled?.activityType?.name === to,
  )
  const tasks = events
    .slice(0, step === -1 ? events.length : step)
    .filter(({ workflowTaskCompletedEventAttributes: task }) => task)
  const again = await client.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId, runId },
    workflowTaskFinishEventId: tasks.at(to === 'first' ? 0 : -1)?.eventId ?? null,
    reason: 'somebody pressed Reset',
    requestId: `${workflowId}-${Math.random()}`,
  })
  return again.runId
}
