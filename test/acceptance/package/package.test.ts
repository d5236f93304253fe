import { parse } from 'csv-parse/sync'
import { execFile, spawn } from 'node:child_process'
import { constants, cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createWorld, type World } from '../../system/export/world.ts'
import { nodeFolder, npm } from './node-versions.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** What npx keeps of the tarball is the package as npm installs it. */
const tarball = './connector-0.1.0.tgz'
let folder: string
/** Where npx runs the tarball: nothing of this package, of npm or of Temporal is there before. */
let bare: string
let npx: (...words: string[]) => ReturnType<typeof npm>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'package-'))
  bare = await mkdtemp(join(tmpdir(), 'bare-'))
  const cache = join(bare, 'npm')
  await mkdir(cache, { recursive: true })
  await npm({ words: ['pack', '--pack-destination', bare], cwd: root })
  // What npm has downloaded before saves half a gigabyte; what it installs stays in this folder.
  const { stdout: usual } = await npm({ words: ['config', 'get', 'cache'], cwd: bare })
  await symlink(join(usual.trim(), '_cacache'), join(cache, '_cacache'))
  const ours = (path: string) => path.includes('node_modules')
  const others = (process.env['PATH'] ?? '').split(delimiter).filter((path) => !ours(path))
  const PATH = [dirname(process.execPath), ...others].join(delimiter)
  const env = { XDG_CACHE_HOME: bare, npm_config_cache: cache, INIT_CWD: undefined, PATH }
  npx = (...words) => npm({ program: 'npx', words: ['--yes', tarball, ...words], cwd: bare, env })
  await npx('--version')
  const [kept = ''] = await readdir(join(cache, '_npx'))
  await cp(join(cache, '_npx', kept, 'node_modules'), join(folder, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
    mode: constants.COPYFILE_FICLONE,
  })
  await writeFile(join(folder, 'package.json'), '{ "private": true }')
  // Builds the package and loads what it depends on.
}, 600_000)
afterAll(() => Promise.all([folder, bare].map((one) => rm(one, { recursive: true, force: true }))))

/** The installed command by its name, as a shell finds it, under the Node that PATH names first. */
function start({ node, words, env = {} }: { node: string; words: string[]; env?: NodeJS.ProcessEnv }) {
  const PATH = [node, join(folder, 'node_modules', '.bin'), '/usr/bin', '/bin'].join(':')
  // An empty cache: nothing that the repository has made earlier may help.
  const child = spawn('connector', words, {
    cwd: folder,
    env: { PATH, XDG_CACHE_HOME: folder, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const texts = { stdout: '', stderr: '' }
  const { promise: says, resolve: heard } = Promise.withResolvers<void>()
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text
      if (texts[name].includes('listening')) heard()
    })
  const ended = new Promise<{ code: number | null } & typeof texts>((resolve) => {
    child.once('close', (code) => {
      heard()
      resolve({ code, ...texts })
    })
  })
  return { child, ended, says }
}

test('npx runs the demo from the tarball alone, on a machine with Node 24 and empty caches', async () => {
  const { stdout, stderr } = await npx('demo')
  expect(stderr.match(/^\w+ +proven/gm)).toHaveLength(4)
  // Pasted into the same shell, which has no `connector`, a hint works.
  expect(stdout).toContain('With your own service: npx ./connector-0.1.0.tgz init')
  expect(new Set(`${stdout}${stderr}`.match(/npx \S+/g))).toEqual(new Set([`npx ${tarball}`]))
  expect(`${stdout}${stderr}`).not.toMatch(/(?<!npx )\bconnector (?:run|init|check|up|export)\b/)
  expect(stderr).toContain("Downloading Temporal's dev server")
  expect(stderr).toContain('The sandbox has 24 of the 24 valid rows exactly once, and 0 not once.')
  expect(await readdir(join(bare, 'data', 'demo'))).toHaveLength(1)
}, 600_000)

describe('the package, installed in an empty folder', () => {
  test('exports with proof, checks and verifies', async () => {
    const node = dirname(process.execPath)
    const world = await createWorld({ counts: { customers: 300, plans: 20 } })
    const run = (...words: string[]) => start({ node, words, env: world.env }).ended
    const worker = start({ node, words: ['worker'], env: world.env })
    await worker.says
    expect(await run('check', '--json')).toMatchObject({ code: 0 })
    const to = 'csv,duckdb,parquet'
    const exported = await run('export', 'customers', 'plans', '--to', to, '--json')
    expect(exported).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Warning') })
    const { exports } = JSON.parse(exported.stdout) as { exports: Record<string, string>[] }
    expect(exports.map(({ verdict }) => verdict)).toEqual(Array(6).fill('proven'))
    const latest = join(world.dataDir, 'exports', 'customers', 'latest-proven')
    expect(await run('verify', latest)).toMatchObject({ code: 0 })
    expect((await idsIn(latest)).toSorted()).toEqual(idsOf(world).toSorted())
    // The shell in which someone types `npx connector` has no `connector`.
    expect((await run('run', 'show', 'nothing')).stderr).toContain('`npx connector run list`')
    worker.child.kill('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Warning') })
    const alone = { ...world.env, TEMPORAL_ADDRESS: '' }
    const local = start({ node, words: ['export', 'plans', '--local', '--json'], env: alone })
    expect(await local.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('"proven"') })
  })

  test('says under an older Node which one it needs, whatever is asked of it', async () => {
    const node = await nodeFolder('20.19.0')
    for (const words of [['check'], ['check', '--json'], ['--help']]) {
      const { code, stdout, stderr } = await start({ node, words }).ended
      expect(code).toBe(2)
      expect(stderr).toMatch(/^error: Node 20\.19\.0 is too old; this needs Node 24 or newer\. .*\n$/)
      if (words.includes('--json'))
        expect(JSON.parse(stdout)).toMatchObject({ error: { name: 'OldNodeError' } })
    }
  })

  test('a clone says so, too', async () => {
    const node = join(await nodeFolder('20.19.0'), 'node')
    await expect(
      promisify(execFile)(node, [join(root, 'scripts', 'start.js'), '--help']),
    ).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^error: Node 20\.19\.0 is too old; this needs Node 24 or newer\. .*\n$/),
    })
  })

  test('holds all that its pages link to, and no code that needs a build', async () => {
    const packed = join(folder, 'node_modules', 'connector')
    const names = await readdir(packed, { recursive: true })
    const pages = names.filter((name) => name.endsWith('.md') && !name.startsWith('node_modules'))
    expect(pages.length).toBeGreaterThan(15)
    const links = await Promise.all(pages.map((page) => linksOf(packed, page)))
    expect(links.flat().filter(({ target }) => !names.includes(target))).toEqual([])
    expect(names).toContain(join('scripts', 'check-certificate.py'))
    expect(names.filter((name) => /\.ts$|^test|(?:^|\/)\.env$/.test(name))).toEqual([])
  })
})

/** Where the links of a page lead, as paths inside the package. */
async function linksOf(packed: string, page: string) {
  const text = (await readFile(join(packed, page), 'utf8')).replaceAll(/```[^]*?```|`[^`\n]*`/g, '')
  return [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, path = '']) => ({
    page,
    target: normalize(join(dirname(page), path)),
  }))
}

async function idsIn(where: string) {
  const text = await readFile(join(where, 'customers.csv'), 'utf8')
  return parse<{ id: string }>(text, { columns: true }).map(({ id }) => id)
}

const idsOf = (world: World) => world.sandbox.control.ids({ resource: 'customers' }).map(String)
