// Builds the contents of the npm package (the prepack script of `npm pack`): dist/, the same code as plain
// JavaScript. Node itself strips types, but never below node_modules.
import { execFile } from 'node:child_process'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))
const dist = join(root, 'dist')
const run = promisify(execFile)

await rm(dist, { recursive: true, force: true })
await run(join(root, 'node_modules', '.bin', 'tsc'), ['-p', join(root, 'scripts', 'pack')])
await rm(join(dist, 'worker', 'bundle-workflows.js'), { force: true })
await nameJavaScript()
await nameProgram(join(dist, 'core', 'runs', 'view', 'shell.js'))
// Runs last, because it replaces the folder of workflows while their files could still be read.
await Promise.all([bundleWorkflows(), describePackage()])

/** Renames `new URL('./thread.ts', import.meta.url)` to `.js`, because tsc rewrites only imports. */
async function nameJavaScript(): Promise<void> {
  const names = await readdir(dist, { recursive: true })
  for (const name of names.filter((name) => name.endsWith('.js'))) {
    const path = join(dist, name)
    const text = await readFile(path, 'utf8')
    const renamed = text.replaceAll(/new URL\('(\.{1,2}\/[^']+)\.ts', import\.meta\.url\)/g, (_, file) => {
      // The package contains the bundle, so the file that builds it is not needed.
      if (!names.includes(join(dirname(name), `${file}.js`)) && !file.endsWith('bundle-workflows'))
        throw new Error(`${name} names ${file}.ts, which is not in scripts/pack/tsconfig.json.`)
      return `new URL('${file}.js', import.meta.url)`
    })
    if (renamed !== text) await writeFile(path, renamed)
  }
}

/** Makes hints name the program as it is typed where the package is installed. */
async function nameProgram(path: string): Promise<void> {
  const text = await readFile(path, 'utf8')
  const renamed = text.replace(/(['"])npx connector\1/, "'connector'")
  if (renamed === text) throw new Error(`${path} does not name the program.`)
  await writeFile(path, renamed)
}

/** Bundles the workflows here, with the exact SDK version that the package requires. */
async function bundleWorkflows(): Promise<void> {
  const folder = join(dist, 'workflows')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder)
  const bundle = join(folder, 'bundle.js')
  await run(process.execPath, [join(root, 'worker', 'bundle-workflows.ts'), bundle])
  await nameProgram(bundle)
}

/** Writes dist/package.json: the code reads its version, and Node whether `.js` files are modules. */
async function describePackage(): Promise<void> {
  const { name, version, type } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await writeFile(join(dist, 'package.json'), `${JSON.stringify({ name, version, type })}\n`)
}
