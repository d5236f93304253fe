import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { childEnvironment, networkVariables } from '../../worker/child-environment.ts'
import type { Obtain } from './obtain.ts'

const downloader = fileURLToPath(new URL('./sdk-download.ts', import.meta.url))
/** In ms: longer than a slow connection stalls, shorter than a person waits for a network that is down. */
const silenceMs = 10_000

/**
 * Downloads the Temporal CLI with the SDK, in a process of its own: the SDK's download cannot be cancelled, and without
 * a network it takes minutes to fail.
 */
export const downloadBinary: Obtain = async ({ file, startTask }) => {
  const folder = mkdtempSync(join(dirname(file), 'download-'))
  const task = startTask(
    'Downloading the Temporal dev server from temporal.download (once; its checksum is not verified)',
  )
  try {
    const reason = await download(folder)
    const [name] = readdirSync(folder).filter((name) => !name.endsWith('.downloading'))
    if (reason !== undefined || name === undefined)
      return `the SDK's download failed (${reason ?? 'no file came'})`
    renameSync(join(folder, name), file)
    return undefined
  } finally {
    task.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function download(folder: string): Promise<string | undefined> {
  const env = childEnvironment({ more: networkVariables })
  const child = spawn(process.execPath, [downloader, folder], { stdio: ['ignore', 'ignore', 'pipe'], env })
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (words += text))
  let seen = { bytes: 0, at: performance.now() }
  const watch = setInterval(() => {
    const bytes = bytesIn(folder)
    if (bytes > seen.bytes) seen = { bytes, at: performance.now() }
    if (performance.now() - seen.at > silenceMs) child.kill('SIGKILL')
  }, 200)
  const [code, signal] = await once(child, 'close')
  clearInterval(watch)
  if (signal !== null) return `nothing came for ${silenceMs / 1000} s`
  return code === 0 ? undefined : words.trim().split('\n').at(-1)
}

function bytesIn(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}
