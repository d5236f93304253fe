import { link, mkdir, readFile, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryName, writeNew } from '../../core/storage/durable.ts'
import { toFileName } from '../../core/storage/file-name.ts'

/** A workflow id that the commands of one data folder agreed on. */
export interface AgreedId {
  id: string
  /** How many ids were agreed on for the same input before, and this one. */
  number: number
  /** In milliseconds since 1970. */
  agreedAt: number
}

/**
 * Lets commands that start the same run at the same time agree on its workflow id before one of them starts it:
 * Temporal's list shows a new run only after a while, and two ids would be two runs.
 */
export function agreedIds({ dataDir, key }: { dataDir: string; key: string }) {
  const folder = join(dataDir, 'starting', toFileName(key))
  const read = async (number: number): Promise<AgreedId> => {
    const path = join(folder, String(number))
    const [id, { mtimeMs: agreedAt }] = await Promise.all([readFile(path, 'utf8'), stat(path)])
    return { id, number, agreedAt }
  }
  return {
    /** The last id; undefined before the first. */
    async last(): Promise<AgreedId | undefined> {
      const names = await readdir(folder).catch(() => [])
      const numbers = names.map(Number).filter(Number.isInteger)
      return numbers.length === 0 ? undefined : await read(Math.max(...numbers))
    },
    /** Proposes an id; where another command was first, its id is the one. */
    async propose({ number, id }: Pick<AgreedId, 'number' | 'id'>): Promise<AgreedId> {
      await mkdir(folder, { recursive: true })
      const path = join(folder, String(number))
      const temporary = temporaryName(path)
      try {
        await writeNew(temporary, id)
        // A link is made whole, and only where nothing lies.
        await link(temporary, path)
        // The one before may still be read by a command that has just seen it.
        await rm(join(folder, String(number - 2)), { force: true })
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      } finally {
        await rm(temporary, { force: true })
      }
      return await read(number)
    },
  }
}
