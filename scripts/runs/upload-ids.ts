import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, rename } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { prepareDataFolder } from '../../worker/data-folder.ts'

/**
 * Copies a file of ids into the data folder, where the worker finds it and nobody changes it, and returns its path
 * relative to that folder. The file is named after its checksum, so that the same file gives the same input, and
 * the same command resumes its unfinished run. The copy is kept: the inputs of runs are never deleted.
 */
export async function uploadIds({ dataDir, path }: { dataDir: string; path: string }): Promise<string> {
  await prepareDataFolder(dataDir)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  const inside = join('fetches', `${hash.digest('hex').slice(0, 16)}-${basename(path)}`)
  await mkdir(join(dataDir, 'fetches'), { recursive: true })
  const to = join(dataDir, inside)
  await copyFile(path, `${to}.${process.pid}`)
  await rename(`${to}.${process.pid}`, to)
  return inside
}
