import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const memory = '/dev/shm'
const leastFreeBytes = 4e9

/**
 * Gives a run of the tests a folder of its own for all temporary folders, by which its processes are known. It lies in
 * memory where there is room: every commit to a ledger waits for the disk, which is half of the time of some files.
 * TESTS_PARENT chooses another place.
 */
export function openTestsFolder(): string {
  const parent = (process.env['TESTS_PARENT'] ??= isUsable(memory) ? memory : tmpdir())
  const folder = mkdtempSync(join(parent, 'tests-'))
  // Servers that run as a user of their own have to get through.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  return folder
}

/** Whether the folder has room, and programs in it can be run. */
function isUsable(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    if (bavail * bsize < leastFreeBytes) return false
    const probe = mkdtempSync(join(folder, 'probe-'))
    try {
      const program = join(probe, 'program')
      writeFileSync(program, '#!/bin/sh\n', { mode: 0o700 })
      return spawnSync(program).status === 0
    } finally {
      rmSync(probe, { recursive: true })
    }
  } catch {
    return false
  }
}

export default function setup(): () => void {
  const folder = openTestsFolder()
  return () => rmSync(folder, { recursive: true, force: true })
}
