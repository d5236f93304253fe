import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { findBinary } from '../scripts/dev-server/find-binary.ts'
import { startDevServer } from '../scripts/dev-server/start-dev-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** host:port of the Temporal server that the whole suite shares; use a task queue and ids of your own. */
    temporalAddress: string
    /** The binary it runs from, for tests that need a server of their own. */
    temporalBinary: string
  }
}

/** One real Temporal server for all tests, in a folder that goes away with it. */
export default async function setup(project: TestProject) {
  const binary = await findBinary({ cliPath: process.env['TEMPORAL_CLI_PATH'], env: process.env, startTask })
  const dataDir = mkdtempSync(join(tmpdir(), 'temporal-'))
  const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary), ui: false })
  project.provide('temporalAddress', server.address)
  project.provide('temporalBinary', binary)
  return async () => {
    await server.stop({ graceMs: 0 })
    rmSync(dataDir, { recursive: true })
  }
}

function startTask(title: string) {
  process.stderr.write(`${title}\n`)
  return { end: () => undefined }
}
