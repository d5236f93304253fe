import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'

/** Whether this process may make a small disk of its own. */
export function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'mount-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folder], { stdio: 'ignore' })
    execFileSync('umount', [folder])
    return true
  } catch {
    return false
  } finally {
    rmdirSync(folder)
  }
}

const diskBytes = 16e6

/** Puts a folder on a small disk of its own, which is gone with the test. */
export function putOnDisk(folder: string) {
  const before = mkdtempSync(join(tmpdir(), 'before-'))
  cpSync(folder, before, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskBytes},mode=700`, 'tmpfs', folder])
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  cpSync(before, folder, { recursive: true })
  rmSync(before, { recursive: true })
  const filler = join(folder, 'filler')
  return {
    /** Until the disk takes no byte more. */
    fill() {
      expect(() => writeFileSync(filler, Buffer.alloc(diskBytes))).toThrow('ENOSPC')
    },
    free: () => rmSync(filler),
  }
}
