import { execFile } from 'node:child_process'
import { access, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cacheFolder } from '../../../worker/cache-folder.js'

/** The folder of the `node` of a version: installed from npm once, and kept. */
export async function nodeFolder(version: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`
  const kept = join(cacheFolder(), `node-${version}`)
  const bin = join(kept, 'node_modules', name, 'bin')
  if (await access(join(bin, 'node')).then(Boolean, () => true)) {
    const fresh = `${kept}.${process.pid}`
    await mkdir(fresh, { recursive: true })
    await npm({ words: ['install', '--prefix', fresh, `${name}@${version}`], cwd: fresh })
    await rename(fresh, kept).catch(() => rm(fresh, { recursive: true }))
  }
  return bin
}

/** npm, or npx, as a person in that folder would run it: nothing of the npm that runs the tests. */
export async function npm(of: {
  program?: 'npm' | 'npx'
  words: readonly string[]
  cwd: string
  env?: NodeJS.ProcessEnv
}) {
  const { program = 'npm', words, cwd } = of
  const outer = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))
  const quick = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts=false']
  const all = program === 'npx' ? [...quick, ...words] : [...words, ...quick]
  return promisify(execFile)(program, all, { cwd, env: { ...Object.fromEntries(outer), ...of.env } })
}
