import { join } from 'node:path'
import { createKeyedMutex } from '../storage/keyed-mutex.ts'
import { isSystemError } from '../storage/system-errors.ts'
import type { Destination } from './destination.ts'
import { UnwritableError } from './errors.ts'
import { folderName } from './export-folder.ts'
import type { FileFormat } from './file-format.ts'
import { publishToFolder } from './folder-destination.ts'
import { publishToStore } from './store/store-destination.ts'

/** Destination for files: in a folder, or in the store that the publication names. */
export function createFileDestination(format: FileFormat): Destination {
  // An abandoned attempt may still be running when the next one begins, which removes staged files.
  const mutex = createKeyedMutex()
  return {
    name: format.name,
    publish(publication) {
      const { resource, store } = publication
      const folder = join(format.root(publication), resource, folderName(publication))
      return mutex.runExclusive(folder, async () => {
        try {
          return await (store === undefined
            ? publishToFolder({ format, publication, folder })
            : publishToStore({ format, publication, folder, store }))
        } catch (error) {
          throw isSystemError(error) ? new UnwritableError({ where: folder, cause: error }) : error
        }
      })
    },
  }
}
