import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, readFile, readdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const workflowsFolder = fileURLToPath(new URL('../workflows', import.meta.url))
/** All code that a bundle can hold: beside their own, workflows import values of these rooms only. */
const codeFolders = [workflowsFolder, fileURLToPath(new URL('../core/runs/view', import.meta.url))]
/** The package has the bundle and not the workflows' code, so that a worker needs no cache and makes nothing. */
const packedBundle = join(workflowsFolder, 'bundle.js')
const bundleScript = fileURLToPath(new URL('./bundle-workflows.ts', import.meta.url))

/** Where what can be made again is kept: `XDG_CACHE_HOME`, else `~/.cache`. */
export const cacheFolder = () =>
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'billing-connector')

/**
 * The path of the workflow code as one file, made once for each state of the code and of the SDK.
 *
 * It is made in a process of its own because the bundler's memory stays with the process that used it: a worker
 * that bundles takes 312 MB at rest, one that loads the file 195 MB.
 */
export async function prepareWorkflowBundle(): Promise<string> {
  if (await isThere(packedBundle)) return packedBundle
  const path = join(cacheFolder(), `workflows-${await codeHash()}.js`)
  if (await isThere(path)) return path
  await mkdir(cacheFolder(), { recursive: true })
  await promisify(execFile)(process.execPath, [bundleScript, path])
  return path
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

async function codeHash(): Promise<string> {
  const hash = createHash('sha256')
  const sdk = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string }
  hash.update(sdk.version)
  for (const folder of codeFolders) {
    for (const name of (await readdir(folder, { recursive: true })).toSorted()) {
      if (name.endsWith('.ts')) hash.update(name).update(await readFile(join(folder, name)))
    }
  }
  return hash.digest('hex').slice(0, 16)
}
