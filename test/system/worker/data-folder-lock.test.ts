import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { FolderLockedError, acquireLock } from '../../../core/state/data-folder-lock.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { mayMount } from '../export/full-disk.ts'

// The holder keeps no reference to its lock and collects its garbage: the folder is held for the life of the process.
const holderScript = `
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'
  import { FolderLockedError, acquireLock } from ${JSON.stringify(new URL('../../../core/state/data-folder-lock.ts', import.meta.url).href)}
  acquireLock({ folder: process.argv[1], role: 'worker' })
  setFlagsFromString('--expose-gc')
  await new Promise((resolve) => setImmediate(resolve))
  runInNewContext('gc')()
  await new Promise((resolve) => setImmediate(resolve))
  console.log('held')
  setInterval(() => {}, 1000)
`

async function startHolder(folder: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--input-type=module-typescript', '-e', holderScript, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const [line] = await once(createInterface(child.stdout), 'line')
  expect(line).toBe('held')
  return child
}

const refusal = (folder: string) => {
  try {
    acquireLock({ folder, role: 'worker' }).release()
    return undefined
  } catch (error) {
    return error
  }
}

test('refuses a second process with the pid and the start of the first', async () => {
  const folder = await temporaryFolder()
  const before = Date.now()
  const child = await startHolder(folder)
  const error = refusal(folder)
  expect(error).toBeInstanceOf(FolderLockedError)
  if (!(error instanceof FolderLockedError)) return
  expect(error.holder).toMatchObject({ pid: child.pid, role: 'worker' })
  expect(Date.parse(error.holder?.startedAt ?? '')).toBeGreaterThan(before - 5_000)
  expect(error.message).toContain(`pid ${child.pid}`)
})

test('is never overtaken while its holder is frozen, and free at once after a SIGKILL', async () => {
  const folder = await temporaryFolder()
  const child = await startHolder(folder)
  child.kill('SIGSTOP')
  expect(refusal(folder)).toBeInstanceOf(FolderLockedError)
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  expect(refusal(folder)).toBeUndefined()
})

test('refuses a second taker in the same process until the first gives it free', async () => {
  const folder = await temporaryFolder()
  const lock = acquireLock({ folder, role: 'worker' })
  expect(refusal(folder)).toBeInstanceOf(FolderLockedError)
  lock.release()
  expect(refusal(folder)).toBeUndefined()
})

test('stays with a live holder whose lock file was removed, until that process ends', async () => {
  const folder = await temporaryFolder()
  const child = await startHolder(folder)
  await rm(join(folder, 'worker.lock'))
  const error = refusal(folder)
  expect(error).toBeInstanceOf(FolderLockedError)
  expect(error).toMatchObject({ holder: { pid: child.pid } })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  expect(refusal(folder)).toBeUndefined()
})

test('knows that it is lost when its file is removed or replaced', async () => {
  for (const isReplaced of [false, true]) {
    const folder = await temporaryFolder()
    const file = join(folder, 'worker.lock')
    const lock = acquireLock({ folder, role: 'worker' })
    expect(lock.isHeld()).toBe(true)
    await copyFile(file, `${file}.copy`)
    await rm(file)
    if (isReplaced) await copyFile(`${file}.copy`, file)
    expect(lock.isHeld()).toBe(false)
    lock.release()
  }
})

test.runIf(mayMount())('on a full disk, a worker says so and leaves no note behind', async () => {
  const folder = await temporaryFolder()
  const pages = 16
  const page = 4096
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${pages * page}`, 'tmpfs', folder])
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  // The lock needs one page; none is left for the note.
  await writeFile(join(folder, 'filler'), Buffer.alloc((pages - 1) * page))
  expect(() => acquireLock({ folder, role: 'worker' })).toThrow(
    expect.objectContaining({ name: 'DiskFullError' }),
  )
  expect((await readdir(folder)).filter((name) => name.includes('json'))).toEqual([])
  await rm(join(folder, 'filler'))
  acquireLock({ folder, role: 'worker' }).release()
})
