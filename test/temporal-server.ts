import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import { openCacheFolder } from '../worker/cache-folder.js'
import { endLeftProcesses } from './left-processes.ts'
import { openTestsFolder } from './temporary-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** host:port of the Temporal server that the whole suite shares; use a task queue and ids of your own. */
    temporalAddress: string
    /** The binary it runs from, for tests that need a server of their own. */
    temporalBinary: string
  }
}

/**
 * One real Temporal server for all tests of a project, in a folder that is removed with it. A process of the run that is
 * still alive at the end fails it.
 */
export default async function setup(project: TestProject) {
  const binary = await findBinary({ env: process.env, startTask })
  const folder = openTestsFolder()
  // As the program does: what Node has compiled is kept for the next process, which takes a third of the CPU to start.
  process.env['NODE_COMPILE_CACHE'] ??= join(openCacheFolder(), 'compiled')
  const dataDir = mkdtempSync(join(folder, 'temporal-'))
  const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary) })
  project.provide('temporalAddress', server.address)
  project.provide('temporalBinary', binary)
  return async () => {
    await server.stop()
    const left = await endLeftProcesses(folder)
    rmSync(folder, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`The tests left processes behind:\n${left.join('\n')}`)
  }
}

function startTask(title: string) {
  process.stderr.write(`${title}\n`)
  return { end: () => undefined }
}
