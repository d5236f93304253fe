import module from 'node:module'
import { join } from 'node:path'
import { cacheFolder } from '../worker/workflow-bundle.ts'

/**
 * Node keeps what it compiled, a file for each module, and every later start takes half the time (`runs` 0.5 s → 0.25,
 * a worker 1.1 s → 0.4). In a folder of the user's own: what lies there is run. Where it can't be written, nothing is kept.
 * NODE_COMPILE_CACHE chooses another, NODE_DISABLE_COMPILE_CACHE none.
 */
module.enableCompileCache(join(cacheFolder(), 'compiled'))
