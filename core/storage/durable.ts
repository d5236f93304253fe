import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Replaces a small file by rename: whoever looks sees the old one or the new one, whole, also after a crash. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await replace(path, (temporary) => writeNew(temporary, text))
}

/** Writes a small file that must not be there yet, into a folder that must be; fsynced. */
export async function writeNew(path: string, text: string | Uint8Array): Promise<void> {
  const file = await open(path, 'wx')
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Points a relative symbolic link somewhere else, by rename. */
export async function replaceLink(path: string, target: string): Promise<void> {
  await replace(path, (temporary) => symlink(target, temporary))
}

async function replace(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const temporary = temporaryName(path)
  try {
    await make(temporary)
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
  await syncFolder(dirname(path))
}

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** A name beside a path that no one else uses, and that is seen to be temporary. */
export const temporaryName = (path: string) =>
  join(dirname(path), `.${basename(path)}.${randomUUID().slice(0, 8)}.tmp`)

/** Removes what a crash left under the temporary names of a path. */
export async function removeTemporaries(path: string): Promise<void> {
  const start = `.${basename(path)}.`
  for (const name of await readdir(dirname(path))) {
    if (name.startsWith(start) && /^[0-9a-f]{8}\.tmp$/.test(name.slice(start.length)))
      await rm(join(dirname(path), name), { recursive: true, force: true })
  }
}
