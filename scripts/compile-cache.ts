import module from 'node:module'
import { join } from 'node:path'
import { openCacheFolder } from '../worker/cache-folder.ts'

/**
 * Enables Node's compile cache, one file per module, which halves the time of every later start (`runs` 0.5 s →
 * 0.25, a worker 1.1 s → 0.4). Entries are keyed by the module's source and checksummed. Because they are executed,
 * nothing is cached in a folder that another user can write to. Skipped if no folder is writable.
 * NODE_COMPILE_CACHE chooses another folder, NODE_DISABLE_COMPILE_CACHE disables the cache.
 */
const folder = tryOpen()
if (folder !== undefined) module.enableCompileCache(join(folder, 'compiled'))

function tryOpen(): string | undefined {
  try {
    return openCacheFolder()
  } catch {
    return undefined
  }
}
