import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'

const run = promisify(execFile)

export const hasPython = await run('python3', ['--version']).then(
  () => true,
  () => false,
)
if (!hasPython) console.log('Without python3, nothing tests what scripts/check-certificate.py says.')

/** What scripts/check-certificate.py says of one export or several. */
export const judgeByPython = async (...folders: string[]): Promise<string> =>
  (await checkByPython(folders)).stdout.trim()

/** What it says of an export in a store, copied out of it. */
export async function judgeStoredByPython(store: FileStore, where: string): Promise<string> {
  const copy = await temporaryFolder()
  for (const { path } of await store.list(store.pathOf(where)!))
    await writeFile(join(copy, basename(path)), (await store.open(path))!)
  return judgeByPython(copy)
}

/** What it says of one export or several, and its exit code; the shell runs something before. */
export async function checkByPython(
  folders: string[],
  before = '',
): Promise<{ stdout: string; code: number }> {
  const command = `${before}exec python3 scripts/check-certificate.py "$@"`
  const checking = run('sh', ['-c', command, 'sh', ...folders])
  return await checking.then(
    ({ stdout }) => ({ stdout, code: 0 }),
    (error: { stdout: string; code: number }) => error,
  )
}

/** The same of many exports, in one process. */
const judgeAll = `
import importlib.util, sys
spec = importlib.util.spec_from_file_location("checker", sys.argv[1])
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
for folder in sys.stdin.read().splitlines():
    print(*checker.judge(folder))
`

export async function judgeAllByPython(folders: readonly string[]): Promise<string[]> {
  const judging = run('python3', ['-c', judgeAll, 'scripts/check-certificate.py'])
  judging.child.stdin?.end(folders.join('\n'))
  return (await judging).stdout.trimEnd().split('\n')
}
