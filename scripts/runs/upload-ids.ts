import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, rename } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { copyName } from '../../core/imports/source-file.ts'
import { type RunPlaces, sharedFiles } from './fetch-run.ts'
import { prepareDataFolder } from '../../worker/data-folder.ts'

/**
 * Copies a file of ids into the data folder, or the store of several workers, where they find it and nobody changes it,
 * and returns its path relative to that folder. The file is named after its checksum, so that the same file gives the same input, and
 * the same command resumes its unfinished run. The copy is kept: the inputs of runs are never deleted.
 */
export async function uploadIds({ settings, path }: { settings: RunPlaces; path: string }): Promise<string> {
  const { dataDir } = settings
  await prepareDataFolder(dataDir)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
  const inside = join('fetches', `${hash.digest('hex').slice(0, 16)}-${copyName(path)}`)
  await mkdir(join(dataDir, 'fetches'), { recursive: true })
  const to = join(dataDir, inside)
  await copyFile(path, `${to}.${process.pid}`)
  await rename(`${to}.${process.pid}`, to)
  await sharedFiles(settings)?.put(inside.split(sep).join('/'), to)
  return inside
}
