import { open, readFile } from 'node:fs/promises'
import type { IdSet } from '../reading/options.ts'
import type { ReadState } from '../reading/state.ts'
import type { Candidate } from './candidate.ts'
import type { CandidateRead } from './read-candidates.ts'

type End = Omit<CandidateRead, 'candidates'>

/** One line of the journal: what came with a step and the state to resume from, the requests so far, or the end. */
interface Line {
  candidates?: Candidate[]
  state?: ReadState
  /** Requests that have left, or were about to, and those of them that brought a window. */
  requests?: number
  answered?: number
  end?: End
}

/** The candidates in a journal that nobody writes to. */
export async function readJournal(path: string): Promise<Candidate[]> {
  const text = await readFile(path, 'utf8')
  return linesOf(text).flatMap(({ candidates = [] }) => candidates)
}

/** A crash may have cut the last line short. */
const wholeLines = (text: string) => text.slice(0, text.lastIndexOf('\n') + 1)

const linesOf = (text: string): Line[] =>
  wholeLines(text)
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]))

/**
 * What was read of the list, one line a step, so that a read whose process died resumes behind its last whole line,
 * and one line a request, so that none is forgotten. One process at a time has it.
 */
export async function openJournal(path: string) {
  const file = await open(path, 'a+')
  const whole = wholeLines(await file.readFile('utf8'))
  await file.truncate(Buffer.byteLength(whole))
  const candidates: Candidate[] = []
  let state: ReadState | undefined
  let requests = 0
  let answered = 0
  let end: End | undefined
  for (const line of linesOf(whole)) {
    candidates.push(...(line.candidates ?? []))
    state = line.state ?? state
    requests = line.requests ?? requests
    answered = line.answered ?? answered
    end = line.end ?? end
  }
  let written: Promise<unknown> = Promise.resolve()
  /** Several requests leave at once, and a file handle takes one write at a time. */
  const write = (line: Line) => {
    const text = `${JSON.stringify({ ...line, requests, answered })}\n`
    written = written.then(async () => {
      await file.appendFile(text)
      await file.datasync()
    })
    return written
  }
  return {
    candidates,
    end,
    get state() {
      return state
    },
    get requests() {
      return requests
    },
    /** How many requests brought no window: failed, or were on their way when a process ended. */
    get failed() {
      return requests - answered
    },
    /** Counts a request that is about to leave; it may once this has resolved. */
    async count(): Promise<void> {
      requests += 1
      await write({})
    },
    /** One of them has brought a window. */
    answer(): void {
      answered += 1
    },
    async append(step: { candidates: Candidate[]; state: ReadState }): Promise<void> {
      candidates.push(...step.candidates)
      ;({ state } = step)
      await write(step)
    },
    async close(ended: End): Promise<CandidateRead> {
      await write({ end: ended })
      return { ...ended, candidates }
    },
    /** Of all that has come so far. */
    idSet(): IdSet {
      const ids = new Set(candidates.map(({ id }) => id))
      return { add: (added) => added.map((id) => ids.size !== ids.add(id).size) }
    },
    release: async () => {
      await written.catch(() => undefined)
      await file.close()
    },
  }
}
