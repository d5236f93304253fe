import { execFile } from 'node:child_process'
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { cacheFolder } from '../../../worker/cache-folder.js'
import { findProgram } from '../programs.ts'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

/** One service of the compose file, as much of it as is looked at. */
export interface Service {
  image: string
  build?: { context: string; dockerfile: string }
  command?: string[]
  entrypoint?: string[]
  environment?: Record<string, unknown>
  ports?: { host_ip?: string; target: number; published: string }[]
  volumes?: { type: string; source: string; target: string }[]
  secrets?: { source: string }[]
  depends_on?: Record<string, { condition: string }>
  profiles?: string[]
  read_only?: boolean
  cap_drop?: string[]
  restart?: string
  user?: string
  working_dir?: string
  stop_grace_period?: string
}
export interface Model {
  services: Record<string, Service>
  secrets: Record<string, { file: string }>
}

const version = 'v2.16.2'

/** The compose specification's own loader, built once from its Go module and kept. */
async function loader(): Promise<string> {
  const folder = join(cacheFolder(), `compose-go-${version}`)
  const kept = join(folder, 'cmd')
  if (await access(kept).then(Boolean, () => true)) {
    process.stderr.write(`Installing the loader of the compose specification (compose-go ${version}), once\n`)
    await promisify(execFile)(
      findProgram('go'),
      ['install', `github.com/compose-spec/compose-go/v2/cmd@${version}`],
      {
        env: { ...process.env, GOBIN: folder, GOFLAGS: '' },
      },
    )
  }
  return kept
}

/** Loads a compose file as an engine would, and throws what the specification says is wrong with it. */
export async function load(file: string): Promise<Model> {
  const { PATH, HOME } = process.env
  const options = { cwd: root, env: { PATH, HOME }, maxBuffer: 2 ** 24 }
  const { stdout } = await promisify(execFile)(await loader(), ['-format', 'json', file], options)
  return JSON.parse(stdout) as Model
}

/**
 * The project's compose file with these variables put in, loaded. They are put in here because the loader's own
 * command reads none.
 */
export async function loadWith(env: Readonly<Record<string, string>>): Promise<Model> {
  const document: unknown = parse(await readFile(join(root, 'docker-compose.yml'), 'utf8'), { merge: true })
  const folder = await mkdtemp(join(tmpdir(), 'compose-'))
  try {
    const file = join(folder, 'docker-compose.yml')
    await writeFile(file, JSON.stringify(fill(document, env)))
    return await load(file)
  } finally {
    await rm(folder, { recursive: true })
  }
}

function fill(value: unknown, env: Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return fillText(value, env)
  if (Array.isArray(value)) return value.map((one) => fill(one, env))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fill(one, env)]))
}

/** A default may hold a variable itself. */
const form = /\$\$|\$\{([A-Z][A-Z0-9_]*):([-+?])((?:[^{}]|\$\{[^}]*\})*)\}|\$/g

function fillText(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(form, (whole, name?: string, how?: string, other = '') => {
    if (whole === '$$') return whole
    if (name === undefined) throw new Error(`A $ that is neither \${NAME:-...} nor $$ in: ${text}`)
    const given = env[name] ?? ''
    if (how === '+') return given === '' ? '' : other
    if (how === '?' && given === '') throw new Error(`${name} is required: ${other}`)
    return given === '' ? fillText(other, env) : given
  })
}

/** Every variable that the compose file reads. */
export async function variablesRead(): Promise<string[]> {
  const text = await readFile(join(root, 'docker-compose.yml'), 'utf8')
  return [...new Set([...text.matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name ?? ''))]
}
