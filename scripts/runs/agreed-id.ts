import { link, mkdir, readFile, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryName, writeNew } from '../../core/storage/durable.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'

/** A workflow id that the commands of one data folder have agreed on. */
export interface AgreedId {
  id: string
  /** The position of this id among those agreed on for the same input, starting at 1. */
  number: number
  /** Milliseconds since 1970. */
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
    /** The latest id; undefined if there is none yet. */
    async last(): Promise<AgreedId | undefined> {
      const names = await readdir(folder).catch(() => [])
      const numbers = names.map(Number).filter(Number.isInteger)
      return numbers.length === 0 ? undefined : await read(Math.max(...numbers))
    },
    /** Proposes an id. If another command was first, returns that command's id. */
    async propose({ number, id }: Pick<AgreedId, 'number' | 'id'>): Promise<AgreedId> {
      await mkdir(folder, { recursive: true })
      const path = join(folder, String(number))
      const temporary = temporaryName(path)
      try {
        await writeNew(temporary, id)
        // Linking is atomic and fails if the path exists.
        await link(temporary, path)
        // Keeps the previous id, because a command that has just seen it may still read it.
        await rm(join(folder, String(number - 2)), { force: true })
      } catch (error) {
        if (!isSystemError(error, 'EEXIST')) throw error
      } finally {
        await rm(temporary, { force: true })
      }
      return await read(number)
    },
  }
}
