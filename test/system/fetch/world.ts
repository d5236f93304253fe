import type { Client } from '@temporalio/client'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import type { FetchInput } from '../../../core/exports/input.ts'
import type { fetchDocuments } from '../../../workflows/export-run.ts'
import type { World } from '../export/world.ts'

let runs = 0

export function startFetch(options: { client: Client; world: World; input: FetchInput; name?: string }) {
  runs += 1
  const { client, world, input, name = `fetch-${world.workspace}-${runs}` } = options
  return client.workflow.start<typeof fetchDocuments>('fetchDocuments', {
    workflowId: name,
    taskQueue: world.taskQueue,
    args: [input],
  })
}

/** The ids of all documents of a kind that the service has. */
export const idsOf = (world: World, resource: 'creditnotes' | 'cancellations'): string[] =>
  world.sandbox.control.ids({ resource }).map(String)

/** Puts a file into the data folder, as somebody who starts a run from the UI does; gives its path in there. */
export async function putFile(world: World, text: string, name = 'ids.csv'): Promise<string> {
  await mkdir(join(world.dataDir, 'inbox'), { recursive: true })
  await writeFile(join(world.dataDir, 'inbox', name), text)
  return join('inbox', name)
}

export async function rowsIn(folder: string, file: string): Promise<Record<string, string>[]> {
  return parse(await readFile(join(folder, file), 'utf8'), { columns: true })
}
