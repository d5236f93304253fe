import { Worker, type ReplayHistoriesIterable } from '@temporalio/worker'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, readdir, rm, stat, utimes } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { replace } from '../core/storage/durable.ts'
import { openCacheFolder } from './cache-folder.js'
import { childEnvironment } from './child-environment.ts'
import { toDataConverter } from './codec/payload-codec.ts'
import type { PayloadKey } from './settings/kinds.ts'
import { createLogger, installRuntime } from './telemetry/log.ts'

const workflowsFolder = fileURLToPath(new URL('../workflows', import.meta.url))
/** All code that a bundle may contain: workflows import values only from their own folder and this one. */
const codeFolders = [workflowsFolder, fileURLToPath(new URL('../core/runs/view', import.meta.url))]
/** The package contains the bundle instead of the workflows' code, so its workers need no cache. */
const packedBundle = join(workflowsFolder, 'bundle.js')
const bundleScript = fileURLToPath(new URL('./bundle-workflows.ts', import.meta.url))

/**
 * The workflow code for a worker.
 * @param encodesFailures - whether the messages of failures are payloads, so that the codec encrypts them
 */
export async function loadWorkflowBundle({ encodesFailures }: { encodesFailures: boolean }) {
  const codePath = await prepareWorkflowBundle()
  const { connectorProgram: program } = globalThis
  const globals = [
    ...(encodesFailures ? ['globalThis.connectorEncodesFailures = true; '] : []),
    ...(program === undefined ? [] : [`globalThis.connectorProgram = ${JSON.stringify(program)}; `]),
  ]
  if (globals.length === 0) return { codePath }
  // On the first line of the bundle, so that its source map's line numbers stay valid.
  return { code: `${globals.join('')}${await readFile(codePath, 'utf8')}` }
}

/**
 * The path of the workflow code as one file, built once for each version of the code and of the SDK.
 *
 * It is built in a separate process because the bundler's memory is never released: an idle worker that bundles takes
 * 312 MB, one that loads the file 195 MB.
 */
export async function prepareWorkflowBundle(): Promise<string> {
  if (existsSync(packedBundle)) return packedBundle
  const folder = openCacheFolder()
  const path = join(folder, `workflows-${await (ownCode ??= codeHash())}.js`)
  const now = new Date()
  // Its time is that of its last use. A cache that cannot be written to serves, too.
  if (existsSync(path)) await utimes(path, now, now).catch(() => {})
  else {
    // Two workers may build it at once, also in one process: each writes a file of its own.
    await replace(path, (fresh) =>
      promisify(execFile)(process.execPath, [bundleScript, fresh], { env: childEnvironment() }),
    )
    await removeOldCode(join(folder, 'compiled')).catch(() => {})
  }
  await removeOldBundles(folder).catch(() => {})
  return path
}

const mostKept = 5
/** Within it, every worker has loaded the bundle that it asked for. */
const hourMs = 3_600_000

/** Each change of the code in a clone makes another bundle of a megabyte. */
async function removeOldBundles(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => /^workflows-[\da-f]{16}\.js$/.test(name))
  const bundles = await Promise.all(
    names.map(async (name) => ({ name, usedMs: (await stat(join(folder, name))).mtimeMs })),
  )
  for (const { name, usedMs } of bundles.toSorted((a, b) => b.usedMs - a.usedMs).slice(mostKept))
    if (usedMs < Date.now() - hourMs) await rm(join(folder, name), { force: true })
}

const monthMs = 30 * 24 * hourMs

/** Node never removes what it has compiled, also of a clone or a version that is gone. What is in use is compiled again. */
async function removeOldCode(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && (await stat(path)).mtimeMs < Date.now() - monthMs) await rm(path, { force: true })
  }
}

/** Computed once: what a process has loaded does not change. */
let ownCode: Promise<string> | undefined

async function codeHash(): Promise<string> {
  const hash = createHash('sha256')
  const sdk = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string }
  hash.update(sdk.version).update(await readFile(bundleScript))
  for (const folder of codeFolders) {
    for (const name of (await readdir(folder, { recursive: true })).toSorted()) {
      if (name.endsWith('.ts')) hash.update(name).update(await readFile(join(folder, name)))
    }
  }
  return hash.digest('hex').slice(0, 16)
}

/** Replays histories against this version's workflow code. Each error says where a history diverges. */
export async function* replayHistories(options: {
  runs: ReplayHistoriesIterable
  payloadKeys: readonly PayloadKey[]
}): AsyncGenerator<{ workflowId: string; error?: Error | undefined }> {
  const { runs, payloadKeys } = options
  // Results include each failure; the SDK would log it again.
  await installRuntime({
    logger: createLogger({ level: 'error', format: 'text', write: () => {} }),
    level: 'error',
    metrics: false,
  })
  const results = Worker.runReplayHistories(
    {
      workflowBundle: await loadWorkflowBundle({ encodesFailures: payloadKeys.length > 0 }),
      dataConverter: toDataConverter(payloadKeys),
    },
    runs,
  )
  for await (const { workflowId, error } of results) yield { workflowId, error }
}
