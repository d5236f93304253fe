import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The state's database and what it has not yet written into its file; the rest is recreated. */
const stateFiles = ['state.db', 'state.db-wal']
/** The files of the runs. */
const runFolders = ['imports', 'recoveries', 'parts', 'exports']
/** How many claims the ledger has made, which a backup of the ledger alone does not put back. */
export const markFile = 'state.claims'

const prefix = join(tmpdir(), 'connector-chaos-')
/** Every folder of a worker, in a text. */
export const folderPattern = new RegExp(`${prefix}\\w+`, 'g')

export const makeFolder = (): string => mkdtempSync(prefix)

/** Links stay links, as with `cp -a`. */
const whole = { recursive: true, verbatimSymlinks: true }

/** A copy of a data folder as it is now: nothing else of this process runs meanwhile, so it is what a kill leaves. */
export function copyFolder(folder: string): string {
  const to = makeFolder()
  cpSync(folder, to, { ...whole, filter: (path) => !path.endsWith('-shm') })
  return to
}

/** Puts the state of a backup into a folder, as the runbook says. */
export const restoreState = (restore: { backup: string; folder: string }) =>
  replace({ ...restore, names: stateFiles })

/** Puts the files of the runs of a backup into a folder. */
export const restoreRunFolders = (restore: { backup: string; folder: string }) =>
  replace({ ...restore, names: runFolders })

export const restoreMark = (restore: { backup: string; folder: string }) =>
  replace({ ...restore, names: [markFile] })

function replace({ backup, folder, names }: { backup: string; folder: string; names: readonly string[] }) {
  for (const name of names) {
    rmSync(join(folder, name), { recursive: true, force: true })
    if (existsSync(join(backup, name))) cpSync(join(backup, name), join(folder, name), whole)
  }
}
