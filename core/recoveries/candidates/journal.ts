import { open, readFile } from 'node:fs/promises'
import type { IdSet } from '../../reading/options.ts'
import type { ReadState } from '../../reading/state.ts'
import type { Candidate, CandidateRead } from './candidate.ts'

type End = Omit<CandidateRead, 'candidates'>

/** One line of the journal: what came with a step and the state that goes on behind it, or the end. */
interface Line {
  candidates?: Candidate[]
  state?: ReadState
  requests?: number
  end?: End
}

/** What a journal has of candidates, for who only looks. */
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
 * What was read of the list, a line a step, so that a read whose process died goes on behind its last whole line.
 * One process at a time has it.
 */
export async function openJournal({ path, inFlight }: { path: string; inFlight: number }) {
  const file = await open(path, 'a+')
  const whole = wholeLines(await file.readFile('utf8'))
  await file.truncate(Buffer.byteLength(whole))
  const candidates: Candidate[] = []
  let state: ReadState | undefined
  let requests = 0
  let end: End | undefined
  for (const line of linesOf(whole)) {
    candidates.push(...(line.candidates ?? []))
    state = line.state ?? state
    requests = line.requests ?? requests
    end = line.end ?? end
  }
  const write = (line: Line) => file.appendFile(`${JSON.stringify(line)}\n`)
  const isNew = whole === ''
  if (isNew) await write({ requests: 0 })
  return {
    candidates,
    end,
    get state() {
      return state
    },
    // Requests of a process that died may have been on their way: they count as made.
    requests: isNew || end !== undefined ? requests : requests + inFlight,
    async append(step: { candidates: Candidate[]; state: ReadState }): Promise<void> {
      candidates.push(...step.candidates)
      ;({ state } = step)
      await write({ ...step, requests: this.requests })
    },
    async close(ended: End): Promise<CandidateRead> {
      await write({ end: ended, requests: ended.requests })
      await file.sync()
      return { ...ended, candidates }
    },
    /** Of all that has come so far. */
    idSet(): IdSet {
      const ids = new Set(candidates.map(({ id }) => id))
      return { add: (added) => added.map((id) => ids.size !== ids.add(id).size) }
    },
    release: () => file.close(),
  }
}
