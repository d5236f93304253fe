import { randomBytes } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { chown, copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { freePorts } from '../../../worker/free-ports.ts'
import { composeProgram, run, startEngine } from './engine.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))

/** The user of the worker, and the owner of its files. */
const user = 1000

export type Stack = Awaited<ReturnType<typeof openStack>>

interface Container {
  Service: string
  State: string
  Health: string
  ExitCode: number
}

/**
 * docker-compose.yml in containers, in a folder with what a clone has beside it, on ports of its own, with the demo's
 * sandbox as the service. Nothing of it is left after `close`.
 */
export async function openStack(options: {
  sandbox: SandboxOptions
  env?: Record<string, string>
  /** Beside the profile `demo`. */
  profiles?: readonly string[]
  /** The size of the data folder's disk. */
  dataBytes?: number
}) {
  const folder = await mkdtemp(join(tmpdir(), 'compose-'))
  const dataDir = join(folder, 'data')
  const secrets = join(folder, 'secrets')
  // For a second worker, and for the store of both.
  const [secondDir, bucket] = [join(folder, 'data-2'), join(folder, 'bucket')]
  await cp(join(root, 'docs'), join(folder, 'docs'), { recursive: true })
  await copyFile(join(root, 'docker-compose.yml'), join(folder, 'docker-compose.yml'))
  await copyFile(join(here, 'compose.test-override.yml'), join(folder, 'override.yml'))
  for (const path of [dataDir, secrets, secondDir, bucket]) {
    await mkdir(path, { mode: 0o700 })
    await chown(path, user, user)
  }
  // A disk of its own, so that it can be filled.
  const ownDisk = `size=${options.dataBytes ?? 2e9},uid=${user},gid=${user},mode=700`
  await run('mount', ['-t', 'tmpfs', '-o', ownDisk, 'tmpfs', dataDir])
  /** A file that the worker's user owns. */
  async function put(path: string, text: string): Promise<void> {
    const file = join(folder, path)
    await writeFile(file, text, { mode: 0o600 })
    await chown(file, user, user)
  }
  await put('secrets/billing-token', 'demo-token\n')
  await writeFile(join(secrets, 'temporal-db-password'), `${randomBytes(24).toString('hex')}\n`, {
    mode: 0o444,
  })
  const password = randomBytes(24).toString('hex')
  await writeFile(join(secrets, 'state-db-password'), `${password}\n`, { mode: 0o444 })
  await put('secrets/state-url', `postgres://connector:${password}@state-db/connector\n`)
  const key = `aws_access_key_id = connector\naws_secret_access_key = ${randomBytes(24).toString('hex')}\n`
  await put('secrets/aws-credentials', `[default]\n${key}`)
  const { token = 'demo-token', workspace = 'acc_demo', ...others } = options.sandbox ?? {}
  const service = { token, workspace, ...others }
  await writeFile(join(folder, 'docs/deployment/demo/sandbox.json'), JSON.stringify(service))

  const names = ['CONSOLE_PORT', 'TEMPORAL_PORT', 'PROMETHEUS_PORT', 'GRAFANA_PORT', 'SANDBOX_PORT']
  const ports = await freePorts(names.length)
  const [consolePort, temporalPort, prometheusPort, , sandboxPort] = ports
  const settings: Record<string, string | number> = {
    BILLING_BASE_URL: 'http://sandbox:8080',
    BILLING_WORKSPACE: service.workspace,
    BILLING_ALLOW_HTTP: 'true',
    BILLING_REQUESTS_PER_SECOND: 200,
    BILLING_READ_LAG_SECONDS: 1,
    BILLING_SETTLE_SECONDS: 1,
    ...Object.fromEntries(names.map((name, index) => [name, ports[index] ?? 0])),
    ...options.env,
  }
  /** Settings in `.env`; a service takes them when it is created again. */
  async function set(more: Record<string, string | number>): Promise<void> {
    Object.assign(settings, more)
    await put(
      '.env',
      Object.entries(settings)
        .map((pair) => `${pair.join('=')}\n`)
        .join(''),
    )
  }
  await set({})

  const engine = await startEngine()
  const program = await composeProgram()
  const files = ['--file', 'docker-compose.yml', '--file', 'override.yml']
  const project = basename(folder).toLowerCase()
  const profiles = ['demo', ...(options.profiles ?? [])].flatMap((name) => ['--profile', name])
  const of = ['--project-name', project, ...files, ...profiles]
  const compose = (...words: string[]) => run(program, [...of, ...words], { cwd: folder, env: engine.env })

  let commands = 0
  /**
   * A command as docs/deployment.md says: `docker compose run --rm connector`. The container is removed afterwards: with
   * `--rm`, podman loses the exit code.
   */
  async function connector(...words: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    commands += 1
    const name = `${project}-command-${commands}`
    const ended = await compose('run', '--no-TTY', '--name', name, 'connector', ...words).then(
      (stdout) => ({ code: 0, stdout, stderr: '' }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
    await engine.podman('rm', '--volumes', name)
    return ended
  }

  /** The sandbox's own control, as it is over HTTP. */
  async function control<T = unknown>(method: string, argument: object = {}): Promise<T> {
    const url = `http://127.0.0.1:${sandboxPort}/_sandbox/${method}`
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(argument) })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    const lines = response.headers.get('content-type')?.includes('ndjson')
    return (
      lines
        ? text
            .trim()
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line))
        : JSON.parse(text)
    ) as T
  }

  return {
    folder,
    dataDir,
    put,
    set,
    compose,
    connector,
    control,
    engine,
    uiUrl: `http://127.0.0.1:${consolePort}`,
    prometheusUrl: `http://127.0.0.1:${prometheusPort}`,
    taskQueue: `billing-${service.workspace}`,
    async connect(): Promise<Client> {
      return new Client({ connection: await Connection.connect({ address: `127.0.0.1:${temporalPort}` }) })
    },
    /** All containers of the project, also those that have ended. */
    async containers(): Promise<Container[]> {
      const lines = await compose('ps', '--all', '--format', 'json')
      return lines
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Container)
    },
    async close(): Promise<void> {
      await compose('--profile', 'monitoring', '--profile', 'commands', 'down', '--volumes', '--timeout', '5')
      await engine.close()
      await run('umount', [dataDir])
      await rm(folder, { recursive: true })
    },
  }
}
