import { readdirSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createWorld, startCommand, startTestWorker, workerListens } from '../export/world.ts'

/** Prints the packages that a process loads on stderr as its last line. */
const printLoaded = `import { registerHooks } from 'node:module'
  const packages = new Set()
  registerHooks({
    load(url, context, next) {
      packages.add([...url.matchAll(/node_modules\\/((?:@[^/]+\\/)?[^/]+)/g)].at(-1)?.[1])
      return next(url, context)
    },
  })
  process.on('exit', () => process.stderr.write('\\n' + [...packages].join(' ')))`

const hooked = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(printLoaded)}` }

const loadedIn = (stderr: string) => (stderr.split('\n').at(-1) ?? '').split(' ')

/** The packages that a process loads with these files of the project. */
async function packagesOf(files: readonly string[]): Promise<string[]> {
  const urls = files.map((file) => new URL(`../../../${file}`, import.meta.url))
  const code = `for (const url of ${JSON.stringify(urls)}) await import(url)`
  const args = ['--input-type=module', '-e', code]
  const { stderr } = await promisify(execFile)(process.execPath, args, { env: { ...process.env, ...hooked } })
  return loadedIn(stderr)
}

const worker = ['@temporalio/worker', '@temporalio/core-bridge']
const databases = ['kysely', 'pg', '@duckdb/node-api', '@aws-sdk/client-s3']

test('only a command that starts a worker loads one, and a command loads a database when it opens one', async () => {
  const all = readdirSync('scripts/commands').map((name) => `scripts/commands/${name}`)
  const light = all.filter((path) => !/\/(up|worker)\.ts$/.test(path))
  const runs = ['scripts/runs/jobs.ts', 'scripts/runs/import.ts']
  const loaded = await packagesOf([...light, ...runs])
  expect(loaded).toContain('@temporalio/client')
  expect(loaded.filter((name) => [...worker, ...databases].includes(name))).toEqual([])
  expect(await packagesOf(['scripts/commands/up.ts'])).toEqual(expect.arrayContaining(worker))
})

test('a command that lists or explains commands loads no schemas', async () => {
  const loaded = await packagesOf(['scripts/command-line.ts', 'scripts/commands/commands.ts'])
  expect(loaded).toContain('commander')
  expect(loaded).not.toContain('zod')
})

test('a command that only starts a run beside a worker, or lists schedules, loads no database, parser or progress bar', async () => {
  const world = await createWorld({ counts: { plans: 7, subscriptions: 7 } })
  await startTestWorker(world)
  await workerListens(world)
  const others = ['csv-stringify', 'saxes', 'yaml', 'croner', 'got']
  const call = async (...words: string[]) => {
    const { code, stderr } = await startCommand(world, [...words, '--json'], { env: hooked }).ended
    expect(code, stderr).toBe(0)
    expect(loadedIn(stderr).filter((name) => [...databases, ...others].includes(name))).toEqual([])
  }
  await call('export', 'plans', '--detach')
  await call('recover', '--dry-run', '--detach')
  await call('schedule', 'list')
})
