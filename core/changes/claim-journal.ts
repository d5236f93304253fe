import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { changeRunFiles } from '../runs/run-files.ts'
import { replaceFile } from '../storage/durable.ts'

/** A claim as the journal keeps it. */
export interface JournaledClaim {
  row: number
  /** How often the row has been claimed, this time included. */
  claims: number
  /** When it was claimed, in milliseconds since 1970. */
  at: number
}

/** Records each claim of a run outside the ledger. */
export interface ClaimJournal extends AsyncDisposable {
  /**
   * Resolves when the claim is on the disk. Called after the ledger has committed the claim and before the request
   * leaves: every request is in the journal, and every journaled claim is in a ledger that was not replaced.
   */
  record(claim: JournaledClaim): Promise<void>
  /** How often a row has been claimed, by its last record; 0 without one. */
  claimsOf(row: number): number
  /** How many claims of the run are on the disk: those of each row by its last record. */
  readonly recorded: number
}

const header = 'row claims at\n'

/** Creates the journal of a run, durably, unless it exists. */
export async function createClaimJournal(folder: string): Promise<void> {
  const path = join(folder, changeRunFiles.claims)
  if ((await readText(path)).startsWith(header)) return
  await replaceFile(path, header)
}

/**
 * Opens the journal of a run for more claims. Claims that arrive while the disk is busy share its next write: one
 * flush covers all that are in flight.
 */
export async function openClaimJournal(folder: string): Promise<ClaimJournal> {
  const path = join(folder, changeRunFiles.claims)
  const isCut = !(await readText(path)).endsWith('\n')
  const known = await readClaims(folder)
  let recorded = known?.recorded ?? 0
  const byRow = new Map<number, number>()
  for (const [row, { claims }] of known?.byRow ?? []) byRow.set(row, claims)
  const file = await open(path, 'a')
  // A crash may have cut the last line short, before its request left. Start a new line.
  let lines = isCut ? '\n' : ''
  let waiting = 0
  let next: Promise<void> | undefined
  let last: Promise<void> = Promise.resolve()
  const flush = async () => {
    const text = lines
    const claims = waiting
    lines = ''
    waiting = 0
    next = undefined
    try {
      await file.appendFile(text)
      await file.datasync()
      recorded += claims
    } catch (error) {
      // Part of a line may have been written.
      lines = `\n${lines}`
      throw error
    }
  }
  return {
    get recorded() {
      return recorded
    },
    claimsOf: (row) => byRow.get(row) ?? 0,
    record: ({ row, claims, at }) => {
      waiting += Math.max(0, claims - (byRow.get(row) ?? 0))
      byRow.set(row, claims)
      lines += `${row} ${claims} ${at}\n`
      // After a failed write the next one tries again; each caller gets the result of its own write.
      last = next ??= last.catch(() => undefined).then(flush)
      return last
    },
    [Symbol.asyncDispose]: async () => {
      await last.catch(() => undefined)
      await file.close()
    },
  }
}

/** The contents of a journal. */
export interface JournalContents {
  /** How many claims: those of each row by its last record. */
  recorded: number
  /** The last claim of each row that was claimed. */
  byRow: Map<number, JournaledClaim>
}

/** Reads the journal of a run; undefined if it has none or the file is not readable. */
export async function readClaims(folder: string): Promise<JournalContents | undefined> {
  const text = await readText(join(folder, changeRunFiles.claims))
  if (!text.startsWith(header)) return undefined
  const byRow = new Map<number, JournaledClaim>()
  for (const line of text.slice(header.length).split('\n')) {
    const [row, claims, at] = line.split(' ').map(Number)
    if (row === undefined || claims === undefined || at === undefined) continue
    if (claims > (byRow.get(row)?.claims ?? 0)) byRow.set(row, { row, claims, at })
  }
  const recorded = [...byRow.values()].reduce((sum, { claims }) => sum + claims, 0)
  return { recorded, byRow }
}

async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
}
