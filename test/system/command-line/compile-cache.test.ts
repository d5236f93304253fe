import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { runProgram } from './run-program.ts'

const version = (env: NodeJS.ProcessEnv) =>
  runProgram({ program: 'scripts/start.js', words: ['--version'], env }).ended

const filesIn = async (folder: string) => {
  const all = await readdir(folder, { recursive: true, withFileTypes: true })
  return all.filter((one) => one.isFile()).map((one) => one.name)
}

test('a command keeps what Node compiled of it for the next one, in the cache folder', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'cache-'))
  onTestFinished(() => rm(cache, { recursive: true }))
  const first = await version({ XDG_CACHE_HOME: cache })
  expect(first).toMatchObject({ code: 0, stderr: '' })
  const kept = await filesIn(join(cache, 'connector', 'compiled'))
  expect(kept.length).toBeGreaterThan(10)
  const second = await version({ XDG_CACHE_HOME: cache })
  expect(second).toMatchObject({ code: 0, stdout: first.stdout, stderr: '' })
  expect(await filesIn(join(cache, 'connector', 'compiled'))).toEqual(kept)
})

test('a command runs as well where there is no place for a cache', async () => {
  expect(await version({ XDG_CACHE_HOME: '/dev/null' })).toMatchObject({ code: 0, stderr: '' })
})

test('a later command of npm parses no TypeScript, not even its first file', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'cache-'))
  onTestFinished(() => rm(cache, { recursive: true }))
  const tell = `process.on('exit', () => console.error(process.moduleLoadList.filter((name) => /amaro/.test(name)).length))`
  const env = {
    XDG_CACHE_HOME: cache,
    NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(tell)}"`,
  }
  const parsers = async () =>
    Number((await runProgram({ program: 'scripts/start.js', words: ['--version'], env }).ended).stderr)
  expect(await parsers()).toBeGreaterThan(0)
  expect(await parsers()).toBe(0)
})
