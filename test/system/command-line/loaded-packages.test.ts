import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commands } from '../../../scripts/commands/commands.ts'

/** The packages that a process loads with these files of the project. */
async function packagesOf(files: readonly string[]): Promise<string[]> {
  const code = `import { registerHooks } from 'node:module'
    import './scripts/compile-cache.js'
    const packages = new Set()
    registerHooks({
      load(url, context, next) {
        packages.add([...url.matchAll(/node_modules\\/((?:@[^/]+\\/)?[^/]+)/g)].at(-1)?.[1])
        return next(url, context)
      },
    })
    for (const url of ${JSON.stringify(files.map((file) => new URL(`../../../${file}`, import.meta.url)))}) await import(url)
    process.stdout.write([...packages].join(' '))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code])
  return stdout.split(' ')
}

const worker = ['@temporalio/worker', '@temporalio/core-bridge']
const databases = ['kysely', 'pg', '@duckdb/node-api', '@aws-sdk/client-s3']

const fileOf = (name: string) => `scripts/commands/${name}.ts`

test('only a command that starts a worker loads one, and a command loads a database when it opens one', async () => {
  const heavy = ['up', 'worker', 'check', 'move-state']
  const light = Object.keys(commands).filter((name) => !heavy.includes(name))
  const runs = ['scripts/runs/run-export.ts', 'scripts/runs/run-recovery.ts', 'scripts/runs/run-import.ts']
  const loaded = await packagesOf([...light.map(fileOf), ...runs])
  expect(loaded).toContain('@temporalio/client')
  expect(loaded.filter((name) => [...worker, ...databases].includes(name))).toEqual([])
  const ofOthers = await packagesOf(['check', 'move-state'].map(fileOf))
  expect(ofOthers.filter((name) => worker.includes(name))).toEqual([])
  expect(await packagesOf([fileOf('up')])).toEqual(expect.arrayContaining(worker))
})

test('a command with --local starts its server before it loads anything of Temporal', async () => {
  const loaded = await packagesOf(['scripts/commands/export.ts', 'scripts/session/local-server.ts'])
  expect(loaded.filter((name) => name.startsWith('@temporalio/'))).toEqual([])
})

test('a command that lists or explains commands loads no schemas', async () => {
  const loaded = await packagesOf(['scripts/command-line.ts', 'scripts/commands/commands.ts'])
  expect(loaded).toContain('commander')
  expect(loaded).not.toContain('zod')
})
