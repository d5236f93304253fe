import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, readFile, readdir, rename, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openCacheFolder } from './cache-folder.ts'
import { childEnvironment } from './child-environment.ts'

const workflowsFolder = fileURLToPath(new URL('../workflows', import.meta.url))
/** All code that a bundle can hold: beside their own, workflows import values of these rooms only. */
const codeFolders = [workflowsFolder, fileURLToPath(new URL('../core/runs/view', import.meta.url))]
/** The package has the bundle and not the workflows' code, so that a worker needs no cache and makes nothing. */
const packedBundle = join(workflowsFolder, 'bundle.js')
const bundleScript = fileURLToPath(new URL('./bundle-workflows.ts', import.meta.url))

/**
 * The path of the workflow code as one file, made once for each state of the code and of the SDK.
 *
 * It is made in a process of its own because the bundler's memory stays with the process that used it: a worker
 * that bundles takes 312 MB at rest, one that loads the file 195 MB.
 */
export async function prepareWorkflowBundle(): Promise<string> {
  if (await isThere(packedBundle)) return packedBundle
  const folder = openCacheFolder()
  const code = await codeHash()
  return (await findBundle({ folder, code })) ?? (await makeBundle({ folder, code }))
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** The name has the hash of what the bundle was made from and of what it holds: one that was cut short or changed is not taken. */
const nameOf = ({ code, content }: { code: string; content: string }) => `workflows-${code}-${content}.js`

async function findBundle({ folder, code }: { folder: string; code: string }): Promise<string | undefined> {
  const isOfCode = (name: string) => name.startsWith(`workflows-${code}-`) && name.endsWith('.js')
  for (const name of (await readdir(folder)).filter(isOfCode)) {
    const path = join(folder, name)
    if (name === nameOf({ code, content: await contentHash(path) })) return path
  }
  return undefined
}

async function makeBundle({ folder, code }: { folder: string; code: string }): Promise<string> {
  // Two workers may make it at once: each writes its own, and the rename is whole.
  const fresh = join(folder, `workflows-${code}.${process.pid}`)
  try {
    await promisify(execFile)(process.execPath, [bundleScript, fresh], { env: childEnvironment() })
    const path = join(folder, nameOf({ code, content: await contentHash(fresh) }))
    await rename(fresh, path)
    return path
  } finally {
    await rm(fresh, { force: true })
  }
}

const contentHash = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

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
