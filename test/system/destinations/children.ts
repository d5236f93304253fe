import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChildTask } from './publish-child.ts'
import type { Workplace } from '../../core/destinations/publication.ts'

const script = join(import.meta.dirname, 'publish-child.ts')

/** Publishes in a process of its own. `fileBlocks` bounds the size of every file it writes, in blocks of 1,024 bytes. */
export async function publishInChild(
  workplace: Workplace,
  task: ChildTask,
  { fileBlocks }: { fileBlocks?: number } = {},
): Promise<{ signal: NodeJS.Signals | null; said: string }> {
  const file = join(workplace.folder, 'task.json')
  await writeFile(file, JSON.stringify(task))
  const limit = fileBlocks === undefined ? '' : `trap '' XFSZ; ulimit -f ${fileBlocks};`
  const child = spawn('bash', ['-c', `${limit} exec "$0" "$1" "$2"`, process.execPath, script, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const said: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => said.push(text))
  const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { signal, said: said.join('').trim() }
}
