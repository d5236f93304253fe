#!/usr/bin/env -S MALLOC_MMAP_THRESHOLD_=65536 node --max-old-space-size=512 --max-semi-space-size=8
// The program `connector`, in a clone (`npx connector`), in the package and in the image. Plain JavaScript, so that an
// old Node says what it needs, and a later start, which has everything in the compile cache, loads no parser.
//
// The flags keep the worker under 350 MB: with the defaults for a large machine, V8 lets 46 MB of live data grow to 300
// before it collects (568 MB in total, measured at 100,000 customers; 323 with them). glibc, which reads the variable as
// the process starts, returns freed buffers of replies to the system instead of keeping them: some 20 MB less.
import { existsSync, readFileSync } from 'node:fs'
import module from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openCacheFolder } from '../worker/cache-folder.js'

/** The oldest Node whose SQLite, `using` and lossless JSON this uses; package.json names the same. */
const oldestNode = 24

const { node } = process.versions
if (Number(node.split('.')[0]) < oldestNode) {
  const message = `Node ${node} is too old; this needs Node ${oldestNode} or newer.`
  const hint =
    'Install it, or start the connector by the path of a newer one: /path/to/node24/bin/node $(command -v connector). In a clone, `npm ci` brings one for `npx connector`.'
  process.stderr.write(`error: ${message} ${hint}\n`)
  const document = { error: { name: 'OldNodeError', message, hint } }
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(document)}\n`)
  process.exit(2)
}
// Files written here and by Temporal's dev server (rows, personal data, the ledger) are accessible to this user only.
process.umask(0o077)
try {
  // A start takes half the time. The thread that runs the workflows takes the folder from the environment.
  process.env['NODE_COMPILE_CACHE'] ??= join(openCacheFolder(), 'compiled')
  module.enableCompileCache()
} catch {
  // Without a folder of its own, where nobody else may put code, it starts without.
}
globalThis.connectorProgram = findNpx()
const source = new URL('connector.ts', import.meta.url)
const program = existsSync(source) ? source : new URL('../dist/scripts/connector.js', import.meta.url)
await import(program.href)

/**
 * What is typed where no shell has the command: npx runs the package from its cache, as in `npx ./connector-0.1.0.tgz`,
 * or it is installed in a folder, which has a package.json, as the folder of global packages does not.
 */
function findNpx() {
  const folder = fileURLToPath(new URL('../../..', import.meta.url))
  try {
    const { _npx } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return ['npx', /[/\\]_npx[/\\][^/\\]+[/\\]$/.test(folder) ? _npx.packages[0] : 'connector']
  } catch {
    // Global, or of an npm that keeps no such note.
    return undefined
  }
}
