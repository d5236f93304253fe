import { copyFile, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findBinary } from '../../../../scripts/dev-server/find-binary.ts'
import buildGateway, { versitygw } from '../../bucket/versitygw.ts'
import { goProgram, run, type Engine } from '../engine.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = fileURLToPath(new URL('../../../..', import.meta.url))

/** The images that docker-compose.yml and the Dockerfile name, by the stage of the Containerfile that stands in. */
const standIns = {
  node: 'docker.io/library/node:24-slim',
  postgres: 'docker.io/library/postgres:17',
  server: 'docker.io/temporalio/server:1.31.2',
  'admin-tools': 'docker.io/temporalio/admin-tools:1.31.2',
  ui: 'docker.io/temporalio/ui:2.50.1',
  versitygw: 'docker.io/versity/versitygw:v1.8.0',
  nginx: 'docker.io/nginxinc/nginx-unprivileged:1.29-alpine',
  prometheus: 'docker.io/prom/prometheus:v3.5.0',
} as const

type Stage = keyof typeof standIns

export const connectorImage = 'docker.io/library/connector:local'
const debian = 'localhost/connector-debian'
/** What the stand-ins of PostgreSQL, nginx and Prometheus run, as Debian has it, and what scripts in containers use. */
const packages = 'ca-certificates,gettext-base,netcat-openbsd,nginx-light,postgresql-15,prometheus'

const temporal = { module: 'go.temporal.io/server', version: 'v1.31.2' }
const temporalUi = { module: 'github.com/temporalio/ui-server/v2', version: 'v2.50.1' }

/**
 * Makes the images that are not in podman's store yet, and the connector's own by its Dockerfile. Images that were pulled
 * are used as they are.
 * @param stages those that the caller needs; the connector's own image needs only `node`
 */
export async function makeImages(
  { podman }: Engine,
  stages: readonly Stage[] = Object.keys(standIns) as Stage[],
): Promise<void> {
  const isThere = (image: string) =>
    podman('image', 'exists', image).then(
      () => true,
      () => false,
    )
  const missing: Stage[] = []
  for (const stage of stages) if (!(await isThere(standIns[stage]))) missing.push(stage)
  if (missing.length > 0 && !(await isThere(debian))) await makeDebian(podman)
  if (missing.length > 0) await makeStandIns(podman, missing)
  process.stderr.write('Building the image of the connector by its Dockerfile\n')
  await podman('build', '--pull=never', '--network=host', '--tag', connectorImage, '--format', 'docker', root)
}

async function makeDebian(podman: Engine['podman']): Promise<void> {
  process.stderr.write('Making a Debian base image with debootstrap, once\n')
  const folder = await mkdtemp(join(tmpdir(), 'debian-'))
  try {
    await run('debootstrap', ['--variant=minbase', `--include=${packages}`, 'bookworm', folder])
    const archive = `${folder}.tar`
    await run('tar', ['-C', folder, '-cf', archive, '--exclude=./var/cache/apt/*', '.'])
    await podman('import', archive, debian)
    await rm(archive)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function makeStandIns(podman: Engine['podman'], missing: readonly Stage[]): Promise<void> {
  const context = await mkdtemp(join(tmpdir(), 'images-'))
  try {
    await cp(here, context, { recursive: true })
    const put = async (name: string, file: string) => cp(file, join(context, name), { recursive: true })
    if (missing.some((stage) => stage !== 'node')) await putPrograms(put)
    await copyFile(process.execPath, join(context, 'node'))
    // `npm root --global` would name a folder beside the project's own Node, which has no npm.
    await put('npm', join(dirname(process.env['npm_execpath'] ?? ''), '..'))
    await put('certificates.crt', process.env['NODE_EXTRA_CA_CERTS'] ?? '/etc/ssl/certs/ca-certificates.crt')
    for (const stage of missing) {
      const image = standIns[stage]
      process.stderr.write(`Making ${image}\n`)
      await podman('build', '--pull=never', '--format=docker', '--target', stage, '--tag', image, context)
    }
  } finally {
    await rm(context, { recursive: true })
  }
}

/** What the stand-ins of all images but Node's are made of. */
async function putPrograms(put: (name: string, file: string) => Promise<void>): Promise<void> {
  await put('temporal-server', await goProgram({ ...temporal, name: 'temporal-server', path: 'cmd/server' }))
  await put(
    'temporal-sql-tool',
    await goProgram({ ...temporal, name: 'temporal-sql-tool', path: 'cmd/tools/sql' }),
  )
  await buildGateway()
  await put('versitygw', versitygw())
  await put('ui-server', await goProgram({ ...temporalUi, name: 'ui-server', path: 'cmd/server' }))
  await put('temporal', await findBinary({ env: process.env, startTask }))
  const server = await moduleFolder(temporal)
  await put('schema', join(server, 'schema'))
  await put('entrypoint.sh', join(server, 'docker', 'scripts', 'sh', 'entrypoint.sh'))
  const ui = await moduleFolder(temporalUi)
  await put('docker.yaml', join(ui, 'config', 'docker.yaml'))
  await put('start-ui-server.sh', join(ui, 'docker', 'start-ui-server.sh'))
}

function startTask(title: string) {
  process.stderr.write(`${title}\n`)
  return { end: () => undefined }
}

/** Where Go keeps the source of a module. */
async function moduleFolder({ module, version }: { module: string; version: string }): Promise<string> {
  const { Dir } = JSON.parse(
    await run('go', ['mod', 'download', '-json', `${module}@${version}`], { cwd: dirname(here) }),
  ) as { Dir: string }
  return Dir
}
