import { open } from 'node:fs/promises'
import type { IdSet } from '../../reading/range-state.ts'
import type { RangeState } from '../../reading/range-state.ts'
import type { Candidate, CandidateRead } from './candidate.ts'

type End = Omit<CandidateRead, 'candidates'>

/** One line of the journal: a step's candidates with the state to resume from, the requests so far, or the end. */
interface Line {
  candidates?: Candidate[]
  state?: RangeState
  /** `requests`: sent, or about to be sent. `answered`: those that returned a window. `failed`: those that failed. */
  requests?: number
  answered?: number
  failed?: number
  end?: End
}

/** Drops the last line if a crash cut it short. */
const wholeLines = (text: string) => text.slice(0, text.lastIndexOf('\n') + 1)

const linesOf = (text: string): Line[] =>
  wholeLines(text)
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]))

/**
 * Opens the journal of a list read: one line per step, so that a read whose process died resumes after its last
 * complete line, and one line per request, so that every request is counted. Only one process at a time may open
 * it.
 */
export async function openJournal(path: string) {
  const file = await open(path, 'a+')
  const whole = wholeLines(await file.readFile('utf8'))
  await file.truncate(Buffer.byteLength(whole))
  const candidates: Candidate[] = []
  let state: RangeState | undefined
  let requests = 0
  let answered = 0
  let failed = 0
  let end: End | undefined
  for (const line of linesOf(whole)) {
    candidates.push(...(line.candidates ?? []))
    state = line.state ?? state
    requests = line.requests ?? requests
    answered = line.answered ?? answered
    failed = line.failed ?? failed
    end = line.end ?? end
  }
  const lost = requests - answered - failed
  let written: Promise<unknown> = Promise.resolve()
  /** Serialized: several requests leave at once, but a file handle takes one write at a time. */
  const write = (line: Line) => {
    const text = `${JSON.stringify({ ...line, requests, answered, failed })}\n`
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
    get failed() {
      return failed
    },
    /** The number of requests that were in flight, or whose windows waited, when an earlier process or attempt ended. */
    lost,
    /** Counts a request before it is sent; send it only after this has resolved. */
    async count(): Promise<void> {
      requests += 1
      await write({})
    },
    /** Counts a request that returned a window. */
    answer(): void {
      answered += 1
    },
    /** Counts a request that failed. */
    async fail(): Promise<void> {
      failed += 1
      await write({})
    },
    async append(step: { candidates: Candidate[]; state: RangeState }): Promise<void> {
      candidates.push(...step.candidates)
      ;({ state } = step)
      await write(step)
    },
    async close(ended: End): Promise<CandidateRead> {
      await write({ end: ended })
      return { ...ended, candidates }
    },
    /** The set of ids read so far. */
    idSet(): IdSet {
      const ids = new Set(candidates.map(({ id }) => id))
      return { add: (added) => added.map(({ id }) => ids.size !== ids.add(id).size) }
    },
    release: async () => {
      await written.catch(() => undefined)
      await file.close()
    },
  }
}
