import { execFile, spawn, spawnSync } from 'node:child_process'
import { access, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { searchAttributes } from '../../../scripts/dev-server/readiness.ts'
import { temporalPlace } from '../../../scripts/session/temporal.ts'
import { openFiles } from '../../../worker/files.ts'
import { described, foreignVariables, inFiles } from '../../../worker/settings/variables.ts'
import { readPlaces, readSettings } from '../../../worker/settings/settings.ts'
import { connectTemporal, createWorld, startCommand } from '../../system/export/world.ts'
import { runProgram } from '../../system/command-line/run-program.ts'
import { load, loadWith, root, variablesRead, type Model } from './compose.ts'

const read = (...path: string[]) => readFile(join(root, ...path), 'utf8')
const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

/** The names of all settings of a worker. */
const known = new Set([
  ...described.map(([name]) => name),
  ...inFiles.map((name) => `${name}_FILE`),
  ...Object.keys(foreignVariables).flatMap((names) => names.split(', ')),
])

const enough = { BILLING_BASE_URL: 'https://billing.example.com', BILLING_WORKSPACE: 'acc_1' }
/** A request's own deadline and what a worker waits beyond it. */
const drainSeconds = Number(new Map(described).get('BILLING_TIMEOUT_SECONDS')?.default) + 5

let demo: Record<string, string>
let model: Model
beforeAll(async () => {
  demo = parseEnv(await read('docs', 'deployment', 'demo', 'demo.env')) as Record<string, string>
  model = await loadWith(demo)
})

describe('docker-compose.yml', () => {
  test('is valid by the specification, for a service of one’s own and for the demo', async () => {
    const own = await loadWith({ ...enough, WAREHOUSE_URL_FILE: './secrets/warehouse-url' })
    for (const { services } of [own, model])
      expect(Object.keys(services).toSorted()).toEqual(
        'bucket connector console grafana postgresql prometheus sandbox state-db temporal temporal-namespace temporal-schema temporal-ui worker worker-2'.split(
          ' ',
        ),
      )
    expect(own.services['worker']?.environment).toMatchObject({
      ...enough,
      WAREHOUSE_URL_FILE: '/run/secrets/warehouse_url',
      CONNECTOR_HASH_KEY_FILE: '',
    })
    expect(own.secrets['warehouse_url']?.file).toBe(join(root, 'secrets', 'warehouse-url'))
  })

  test('says what is missing in .env, by the specification’s own loader', async () => {
    await expect(load('docker-compose.yml')).rejects.toThrow(/BILLING_BASE_URL is not set; put it into \.env/)
  })

  test('names only files that are there, and secrets only as files', async () => {
    const { services, secrets } = model
    const made = ['data', 'data-2', 'bucket'].map((name) => join(root, name))
    for (const { volumes = [], build } of Object.values(services)) {
      for (const { type, source } of volumes)
        if (type === 'bind' && !made.includes(source)) expect(await isThere(source), source).toBe(true)
      if (build !== undefined) expect(await isThere(join(build.context, build.dockerfile))).toBe(true)
    }
    for (const { file } of Object.values(secrets)) expect(await isThere(file), file).toBe(true)
    const given = Object.values(services).flatMap(({ environment = {} }) => Object.entries(environment))
    const secretNames = inFiles
    expect(
      given.filter(([name]) => [...secretNames, 'POSTGRES_PASSWORD', 'POSTGRES_PWD'].includes(name)),
    ).toEqual([])
    const used = Object.values(services).flatMap((one) => one.secrets?.map(({ source }) => source) ?? [])
    expect(new Set(used)).toEqual(new Set(Object.keys(secrets)))
  })

  test('gives the worker only variables that it knows, and reads only documented ones', async () => {
    for (const name of Object.keys(model.services['worker']?.environment ?? {})) expect(known).toContain(name)
    const page = await read('docs', 'deployment.md')
    for (const name of await variablesRead())
      expect(known.has(name) || page.includes(`\`${name}\``), name).toBe(true)
  })

  test('calls commands with options that they have', async () => {
    for (const name of ['worker', 'sandbox']) {
      const [command = 'worker', ...options] = model.services[name]?.command ?? []
      const help = await runProgram({ program: 'scripts/start.js', words: [command, '--help'] }).ended
      expect(help.code).toBe(0)
      for (const option of options.filter((word) => word.startsWith('--')))
        expect(help.stdout).toContain(`${option} `)
    }
  })

  test('opens ports to this machine only', () => {
    const published = Object.entries(model.services).flatMap(([name, { ports = [] }]) =>
      ports.map(({ host_ip: host, published: port, target }) => [name, host, port, target]),
    )
    expect(published).toEqual([
      ['console', '127.0.0.1', '8080', 8080],
      ['grafana', '127.0.0.1', '3000', 3000],
      ['prometheus', '127.0.0.1', '9090', 9090],
      ['temporal', '127.0.0.1', '7233', 7233],
    ])
  })

  test('gives no right that is not needed, and everything comes back by itself', () => {
    for (const name of [
      'worker',
      'worker-2',
      'bucket',
      'connector',
      'sandbox',
      'console',
      'temporal-ui',
      'prometheus',
      'grafana',
      'temporal-namespace',
    ])
      expect(model.services[name], name).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
    expect(model.services['worker']?.user).toBe('1000:1000')
    for (const [name, { restart }] of Object.entries(model.services))
      expect([name, restart]).toEqual([
        name,
        name === 'connector' ? 'no' : /schema|namespace/.test(name) ? 'on-failure:10' : 'unless-stopped',
      ])
  })

  test('runs a command with the worker’s settings, files and rights, in ./data, and starts nothing else for it', () => {
    const { worker, connector } = model.services
    const { environment, image, secrets, volumes, user } = worker ?? {}
    expect(connector).toMatchObject({ environment, image, secrets, volumes, user, profiles: ['commands'] })
    expect(connector).toMatchObject({ working_dir: '/data', command: ['--help'] })
    expect(connector?.depends_on ?? {}).toEqual({})
  })

  test('runs a second worker with the settings, secrets and rights of the first, and a data folder of its own', async () => {
    const fleet = parseEnv(await read('docs', 'deployment', 'fleet', 'fleet.env')) as Record<string, string>
    const { services, secrets } = await loadWith({ ...enough, ...fleet })
    const { worker, 'worker-2': second } = services
    expect({ ...second, profiles: undefined, volumes: undefined }).toEqual({
      ...worker,
      profiles: undefined,
      volumes: undefined,
    })
    expect(second).toMatchObject({ profiles: ['fleet'], volumes: [{ source: join(root, 'data-2') }] })
    expect(worker?.environment).toMatchObject({
      CONNECTOR_STATE_URL_FILE: '/run/secrets/state_url',
      CONNECTOR_FILES_URL: 's3://connector/billing',
      AWS_SHARED_CREDENTIALS_FILE: '/run/secrets/aws_credentials',
    })
    expect(secrets['state_url']?.file).toBe(join(root, 'secrets', 'state-url'))
    // The store is reached over http, which a worker refuses unless it is allowed.
    // Its secrets are files of the container.
    const env = Object.entries(worker?.environment ?? {}).filter(([name]) => !name.endsWith('_FILE'))
    const places = readPlaces({ env: Object.fromEntries(env) as Record<string, string>, cwd: '/nowhere' })
    expect(() => openFiles(places)).not.toThrow()
    // An installation without the profile has none.
    expect(model.services['worker']?.environment).toMatchObject({ CONNECTOR_STATE_URL_FILE: '' })
    expect(services['bucket']?.image).toBe('versity/versitygw:v1.8.0')
    expect((await loadWith({ ...enough, ...fleet, BUCKET_IMAGE: 'mine:1' })).services['bucket']?.image).toBe(
      'mine:1',
    )
  })

  test('lets Prometheus scrape where the worker serves, with rules that are there', async () => {
    const {
      scrape_configs: [scrape, ofServer],
      rule_files: rules,
    } = parse(await read('docs', 'deployment', 'prometheus.yml')) as {
      scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[]
      rule_files: string[]
    }
    const served = String(model.services['worker']?.environment?.['CONNECTOR_METRICS_ADDRESS'])
    expect(scrape?.static_configs[0]?.targets).toEqual([served.replace('0.0.0.0', 'worker')])
    const endpoint = String(model.services['temporal']?.environment?.['PROMETHEUS_ENDPOINT'])
    expect(ofServer?.static_configs[0]?.targets).toEqual([endpoint.replace('0.0.0.0', 'temporal')])
    for (const job of [scrape, ofServer])
      expect(await read('docs', 'alerts.yml')).toContain(`up{job="${job?.job_name}"}`)
    const mounted = model.services['prometheus']?.volumes?.map(({ target }) => target)
    for (const rule of rules) expect(mounted).toContain(rule)
  })

  test('links to the UI under the port that people open it at', async () => {
    const other = await loadWith({ ...enough, CONSOLE_PORT: '18080' })
    expect(other.services['worker']?.environment?.['CONNECTOR_UI_URL']).toBe('http://127.0.0.1:18080')
    expect(model.services['worker']?.environment?.['CONNECTOR_UI_URL']).toBe('http://127.0.0.1:8080')
  })

  test('waits for a worker to drain before it is killed', () => {
    expect(Number.parseInt(model.services['worker']?.stop_grace_period ?? '', 10)).toBeGreaterThan(
      drainSeconds,
    )
  })

  test('switches off what repeats behind a run’s back, and puts the banner over the real UI', async () => {
    const { environment } = model.services['temporal-ui'] ?? {}
    expect(environment).toMatchObject({
      TEMPORAL_WORKFLOW_RESET_DISABLED: 'true',
      TEMPORAL_ACTIVITY_COMMANDS_DISABLED: 'true',
    })
    const template = await read('docs', 'deployment', 'console.conf.template')
    expect(template).toContain(`proxy_pass http://temporal-ui:${String(environment?.['TEMPORAL_UI_PORT'])};`)
    const told = model.services['console']?.environment ?? {}
    expect(new Set([...template.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name]) => name))).toEqual(
      new Set(Object.keys(told).filter((name) => /^(BILLING|CONSOLE)_/.test(name))),
    )
    expect(told['NGINX_ENVSUBST_FILTER']).toBe('^(BILLING|CONSOLE)_')
    expect(template).toMatch(/default LIVE;\s+true {4}TEST;/)
  })
})

describe('the demo of docker-compose.yml', () => {
  test('has a stand-in that takes the token and the workspace of demo.env', async () => {
    const { port, host, ...options } = await sandboxOptions()
    expect({ port, host }).toEqual({ port: '8080', host: '0.0.0.0' })
    expect(demo['BILLING_BASE_URL']).toBe(`http://sandbox:${port}`)
    const words = ['sandbox', '--host', '127.0.0.1', '--options', options.file, '--json']
    const sandbox = runProgram({ program: 'scripts/start.js', words })
    await sandbox.says('}')
    const { url } = JSON.parse(sandbox.texts.stdout) as { url: string }
    const token = (await read(demo['BILLING_TOKEN_FILE'] ?? '')).trim()
    const headers = { authorization: `Token ${token}`, 'x-simple-workspace': demo['BILLING_WORKSPACE'] ?? '' }
    expect((await fetch(`${url}/plans/`, { headers })).status).toBe(200)
  })

  async function sandboxOptions() {
    const words = model.services['sandbox']?.command ?? []
    const after = (option: string) => words[words.indexOf(option) + 1]
    const mounted = model.services['sandbox']?.volumes?.find(({ target }) => target === after('--options'))
    return { port: after('--port'), host: after('--host'), file: mounted?.source ?? '' }
  }
})

describe('the one-shot service for the namespace', () => {
  test('waits for a server whose port is open before it answers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bin-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    // The real command, after a server that is not ready was asked twice.
    const asked = join(folder, 'asked')
    const program = `#!/bin/sh\nif [ "$(cat ${asked} 2> /dev/null | wc -l)" -lt 2 ]; then echo "$@" >> ${asked}; exit 1; fi\nexec ${inject('temporalBinary')} "$@"\n`
    await writeFile(join(folder, 'temporal'), program, { mode: 0o755 })
    const env = {
      PATH: `${folder}:${process.env['PATH']}`,
      HOME: folder,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE: `late-${process.pid}`,
    }
    await promisify(execFile)('sh', [join(root, 'docs', 'deployment', 'set-up-namespace.sh')], { env })
    expect(await readFile(asked, 'utf8')).toBe('operator cluster health\noperator cluster health\n')
  })

  test('says at once that it needs the command line of Temporal', async () => {
    const script = join(root, 'docs', 'deployment', 'set-up-namespace.sh')
    await expect(promisify(execFile)('/bin/sh', [script], { env: { PATH: '' } })).rejects.toMatchObject({
      code: 1,
      stderr: "This needs Temporal's command line, temporal, on the PATH.\n",
    })
  })

  test('makes the namespace and the search attributes that runs carry, and may run again', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bin-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await mkdir(join(folder, 'bin'))
    await symlink(inject('temporalBinary'), join(folder, 'bin', 'temporal'))
    const namespace = `ops-${process.pid}`
    const env = {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: folder,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TEMPORAL_NAMESPACE: namespace,
    }
    const script = join(root, 'docs', 'deployment', 'set-up-namespace.sh')
    for (const _ of ['first', 'again']) await promisify(execFile)('sh', [script], { env })
    const client = await connectTemporal()
    const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace })
    // Temporal's own numbers of types.
    const types: Record<string, number> = { Keyword: 2, Bool: 5, KeywordList: 7 }
    expect(customAttributes).toMatchObject(
      Object.fromEntries(Object.entries(searchAttributes).map(([name, type]) => [name, types[type]])),
    )
  })
})

describe('the Dockerfile', () => {
  test('starts the package’s own program, and not as root', async () => {
    const file = await read('Dockerfile')
    const { bin, scripts } = JSON.parse(await read('package.json')) as {
      bin: Record<string, string>
      scripts: Record<string, string>
    }
    expect(file).toContain(`ln -s /app/${bin['connector']} /usr/local/bin/connector\n`)
    expect(scripts).toHaveProperty('prepack')
    // Without them the worker reaches no Temporal over TLS: the slim image has none.
    expect(file.slice(file.lastIndexOf('\nFROM '))).toMatch(/apt-get install .*ca-certificates/)
    expect(file).toMatch(/\nUSER node\n[^]*\nENTRYPOINT \["connector"\]\nCMD \["worker"\]\n$/)
    const told = [...file.matchAll(/\b((?:CONNECTOR|BILLING)_[A-Z_]+)=/g)].map(([, name]) => name)
    expect(told.length).toBeGreaterThan(0)
    for (const name of told) expect(known).toContain(name)
  })

  test('leaves secrets and unneeded files out of the image, and nothing else', async () => {
    const ignored = (await read('.dockerignore')).trim().split('\n')
    expect(ignored).toEqual(expect.arrayContaining(['.env', 'secrets', 'data', 'node_modules', '.git']))
    const { include } = JSON.parse(await read('scripts', 'pack', 'tsconfig.json')) as { include: string[] }
    const needed = ['package.json', 'package-lock.json', 'tsconfig.json', 'workflows', 'scripts', ...include]
    for (const path of needed) expect(ignored).not.toContain(path.replace(/^(\.\.\/)+/, '').split('/')[0])
  })

  test('asks for the health that a worker serves', async () => {
    const [, line = ''] = /HEALTHCHECK[^\n]*\\\n\s+CMD (\[.*\])/.exec(await read('Dockerfile')) ?? []
    const [program = '', ...words] = JSON.parse(line) as string[]
    const world = await createWorld()
    const worker = startCommand(world, ['worker'], { env: { CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0' } })
    await worker.says('listening')
    const [, url = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(worker.texts.stderr) ?? []
    const ask = () =>
      new Promise((resolve) => {
        const asked = words.map((word) => word.replace('http://127.0.0.1:9464', url))
        spawn(program === 'node' ? process.execPath : program, asked).once('close', resolve)
      })
    expect(await ask()).toBe(0)
    worker.child.kill('SIGTERM')
    expect((await worker.ended).code).toBe(0)
    expect(await ask()).toBe(1)
  })
})

describe('the systemd unit', () => {
  test('starts a command that there is, with variables that it knows, and waits for the drain', async () => {
    const unit = await read('docs', 'deployment', 'connector.service')
    const values = (key: string) =>
      [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value ?? '')
    const [path = '', command = ''] = values('ExecStart')[0]?.split(' ') ?? []
    expect(path).toBe('/opt/connector/bin/connector')
    expect(await read('docs', 'deployment.md')).toContain('npm install -g --prefix /opt/connector ')
    expect(await read('scripts', 'commands', 'commands.ts')).toContain(`import('./${command}.ts')`)
    for (const one of values('Environment')) expect(known).toContain(one.split('=')[0])
    expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(drainSeconds)
    expect(values('RestartPreventExitStatus')).toEqual(['2'])
    const page = await read('docs', 'deployment.md')
    for (const file of [...values('EnvironmentFile'), '/etc/connector/billing-token'])
      expect(page).toContain(file)
  })
})

describe('the systemd unit, read by systemd', () => {
  // The command is not installed where the tests run; systemd looks whether it is there.
  test.skipIf(spawnSync('systemd-analyze', ['--version']).error)(
    'holds nothing that it warns of',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'unit-'))
      onTestFinished(() => rm(folder, { recursive: true }))
      const file = join(folder, 'connector.service')
      const unit = await read('docs', 'deployment', 'connector.service')
      await writeFile(file, unit.replace(/^ExecStart=\S+ /m, `ExecStart=${process.execPath} `))
      const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', file])
      expect(stdout + stderr).toBe('')
    },
  )
})

describe('docs/deployment.md', () => {
  test('shows a way into Temporal Cloud and through mutual TLS that the connector understands', async () => {
    const page = await read('docs', 'deployment.md')
    const folder = await mkdtemp(join(tmpdir(), 'tls-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const blocks = [...page.matchAll(/```sh\n(TEMPORAL_[^]*?)```/g)].map(([, text]) => parseEnv(text ?? ''))
    expect(blocks).toHaveLength(2)
    for (const block of blocks) {
      const here = await withFiles(block as Record<string, string>, folder)
      const env = { ...enough, BILLING_TOKEN: 'x', CONNECTOR_DATA_DIR: folder, ...here }
      const { connectionOptions, namespace, apiKeyFile } = temporalPlace(readSettings({ env, cwd: folder }))
      expect(namespace).toBe(block['TEMPORAL_NAMESPACE'])
      const { TEMPORAL_ADDRESS: address } = block
      const pair = { clientCertPair: { crt: expect.anything(), key: expect.anything() } }
      const hasKey = block['TEMPORAL_API_KEY_FILE'] !== undefined
      expect(apiKeyFile).toBe(here['TEMPORAL_API_KEY_FILE'])
      expect(connectionOptions).toMatchObject(hasKey ? { address } : { address, tls: pair })
    }
  })
})

/** The same settings with their files in a folder of ours. */
async function withFiles(block: Record<string, string>, folder: string): Promise<Record<string, string>> {
  const moved = Object.entries(block).map(async ([name, value]) => {
    if (!/_(PATH|FILE)$/.test(name)) return [name, value]
    await writeFile(join(folder, basename(value)), 'what-it-holds', { mode: 0o600 })
    return [name, join(folder, basename(value))]
  })
  return Object.fromEntries((await Promise.all(moved)) as [string, string][])
}

describe('docs/operating.md', () => {
  test('quotes sentences that the connector says', async () => {
    const { stdout } = await promisify(execFile)('git', ['ls-files', '*.ts', '*.js', ':!test', ':!bench'], {
      cwd: root,
    })
    const code = (
      await Promise.all(
        stdout
          .trim()
          .split('\n')
          .map((path) => read(path)),
      )
    ).join('\n')
    const quotes = [...(await read('docs', 'operating.md')).matchAll(/“([^”]+)”/g)].map(
      ([, words]) => words ?? '',
    )
    expect(quotes.length).toBeGreaterThan(15)
    // The SDK's word.
    expect(quotes.filter((words) => !code.includes(words))).toEqual(['nondeterminism'])
  })
})
