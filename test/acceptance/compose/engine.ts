import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openCacheFolder } from '../../../worker/cache-folder.js'

/** Of podman as root: cgroups and limits as they are, and networks whose containers know each other by name. */
const configuration = `[containers]
default_ulimits = []
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[network]
network_backend = "netavark"
`

export interface Engine {
  /** For `podman`, and for `docker-compose`, which speaks to podman's socket. */
  env: NodeJS.ProcessEnv
  podman: (...words: string[]) => Promise<string>
  close(): Promise<void>
}

/**
 * Podman with a socket, as long as the tests run.
 * @throws {Error} Where it is not installed.
 */
export async function startEngine(): Promise<Engine> {
  const folder = await mkdtemp(join(tmpdir(), 'engine-'))
  const file = join(folder, 'containers.conf')
  await writeFile(file, configuration)
  const socket = join(folder, 'podman.sock')
  const env = { ...process.env, CONTAINERS_CONF: file, DOCKER_HOST: `unix://${socket}` }
  const service = spawn('podman', ['system', 'service', '--time=0', `unix://${socket}`], {
    env,
    stdio: 'ignore',
  })
  const failed = once(service, 'error').then(([error]) => {
    throw new Error('Install podman, runc, catatonit, netavark, aardvark-dns and debootstrap with apt-get.', {
      cause: error,
    })
  })
  await Promise.race([failed, waitFor(socket)])
  const podman: Engine['podman'] = (...words) => run('podman', words, { env })
  const ending = new AbortController()
  const checks = checkHealth(podman, ending.signal)
  return {
    env,
    podman,
    async close() {
      ending.abort()
      await checks
      service.kill()
      await once(service, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}

/** Podman leaves it to systemd to run health checks in time; a machine without it never finds a container healthy. */
async function checkHealth(podman: Engine['podman'], ending: AbortSignal): Promise<void> {
  const format = ['--filter=label=com.docker.compose.project', '--format={{.Names}}']
  while (!ending.aborted) {
    const names = (await podman('ps', ...format)).split('\n').filter(Boolean)
    // Without a check, or without success, it ends with an error; Compose sees the state that it leaves.
    for (const name of names) await podman('healthcheck', 'run', name).catch(() => undefined)
    await sleep(2_000, undefined, { signal: ending }).catch(() => undefined)
  }
}

async function waitFor(path: string): Promise<void> {
  while (
    !(await access(path).then(
      () => true,
      () => false,
    ))
  )
    await sleep(50)
}

/**
 * Runs a program and returns what it prints.
 * @throws {Error} With what it says on stderr, if it fails.
 */
export async function run(
  program: string,
  words: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, words, { maxBuffer: 2 ** 28, ...options })
  return stdout
}

/** A program of a Go module, built once at this version, checked against Go's checksum database, and kept. */
export async function goProgram(of: {
  name: string
  path: string
  module: string
  version: string
}): Promise<string> {
  const { name, path, module, version } = of
  const folder = join(openCacheFolder(), `${name}-${version}`)
  const file = join(folder, name)
  if (
    await access(file).then(
      () => true,
      () => false,
    )
  )
    return file
  process.stderr.write(`Building ${name} ${version} from its Go module, once\n`)
  await mkdir(folder, { recursive: true })
  const source = await mkdtemp(join(tmpdir(), 'go-'))
  const options = { cwd: source, env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' } }
  const built = join(folder, `built-${process.pid}`)
  try {
    await run('go', ['mod', 'init', 'program'], options)
    await run('go', ['get', `${module}/${path}@${version}`], options)
    await run('go', ['build', '-ldflags=-s -w', '-o', built, `${module}/${path}`], options)
    await rename(built, file)
  } finally {
    await rm(source, { recursive: true })
  }
  return file
}

/** `docker compose` as a program of its own. */
export const composeProgram = (): Promise<string> =>
  goProgram({
    name: 'docker-compose',
    module: 'github.com/docker/compose/v2',
    path: 'cmd',
    version: 'v2.40.3',
  })
