import { execFile } from 'node:child_process'
import { renameSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { childEnvironment, networkVariables } from '../../worker/child-environment.ts'
import type { Obtain } from './obtain.ts'

const moduleFolder = fileURLToPath(new URL('./temporal-cli/', import.meta.url))

/** Environment variables of the Go toolchain. */
const goVariables =
  'GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOINSECURE GOFLAGS GOENV GOROOT GOPATH GOCACHE GOMODCACHE GOTMPDIR GOTOOLCHAIN GOMAXPROCS'.split(
    ' ',
  )

/** Builds the Temporal CLI from its Go modules, at the versions and checksums of temporal-cli/. */
export const buildBinary: Obtain = async ({ file, startTask }) => {
  // Takes 4 minutes on two idle cores, including the modules; 7 on busy ones.
  const task = startTask('Building the Temporal dev server from its Go modules (once, about 4 minutes)')
  try {
    return await buildGoProgram({
      folder: moduleFolder,
      program: 'github.com/temporalio/cli/cmd/temporal',
      file,
    })
  } finally {
    task.end()
  }
}

/** Builds a Go program of the module in a folder, at its versions and checksums. Returns the reason if it failed. */
export async function buildGoProgram(of: {
  folder: string
  program: string
  file: string
}): Promise<string | undefined> {
  const { folder, program, file } = of
  const fresh = `${file}.${process.pid}`
  try {
    const args = ['build', '-mod=readonly', '-ldflags=-s -w', '-o', fresh, program]
    const env = {
      ...childEnvironment({ more: [...networkVariables, ...goVariables] }),
      CGO_ENABLED: '0',
      GOWORK: 'off',
    }
    await promisify(execFile)('go', args, { cwd: folder, env, maxBuffer: 2 ** 26 })
    renameSync(fresh, file)
    return undefined
  } catch (error) {
    return whyNot(error)
  } finally {
    rmSync(fresh, { force: true })
  }
}

function whyNot(error: unknown): string {
  const { code, stderr } = error as { code?: unknown; stderr?: string }
  if (code === 'ENOENT') return 'Go, which builds it, is not installed'
  const words = stderr?.trim().split('\n').at(-1) || String(error)
  return `the build with Go failed (${words})`
}
