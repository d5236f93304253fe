import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'
import { endLeftProcesses } from './left-processes.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** host:port of the Temporal server that the whole suite shares; use a task queue and ids of your own. */
    temporalAddress: string
    /** The binary it runs from, for tests that need a server of their own. */
    temporalBinary: string
  }
}

/**
 * One real Temporal server for all tests, in a folder that goes away with it. All temporary folders of the run lie in
 * one, by which its processes are known: one that is alive at the end fails the run.
 */
export default async function setup(project: TestProject) {
  const binary = await findBinary({ cliPath: process.env['TEMPORAL_CLI_PATH'], env: process.env, startTask })
  // Each project of the run comes here: their folders lie beside each other.
  const parent = (process.env['TESTS_PARENT'] ??= tmpdir())
  const folder = mkdtempSync(join(parent, 'tests-'))
  // Servers that run as a user of their own have to get through.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  const dataDir = mkdtempSync(join(folder, 'temporal-'))
  const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary), ui: false })
  project.provide('temporalAddress', server.address)
  project.provide('temporalBinary', binary)
  return async () => {
    await server.stop({ graceMs: 0 })
    const left = await endLeftProcesses(folder)
    rmSync(folder, { recursive: true, force: true })
    if (left.length > 0) throw new Error(`The tests left processes behind:\n${left.join('\n')}`)
  }
}

function startTask(title: string) {
  process.stderr.write(`${title}\n`)
  return { end: () => undefined }
}
