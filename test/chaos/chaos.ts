import { parseArgs } from 'node:util'
import { type Job, jobs } from './histories/history.ts'
import { MissingProgram, type PartName, partNames, parts } from './parts.ts'
import { Tally } from './tally.ts'

/** Plays all that can go wrong at random, and prints what it did and what it found: `npm run chaos -- --help`. */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: partNames.join(',') },
    rounds: { type: 'string', default: 'Infinity' },
    job: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
})

const help = `chaos [--minutes 60] [--seed N] [--only PART,PART] [--rounds N] [--job NAME ...]

Plays each part for its share of the minutes, one part after the other, in rounds with the seeds N, N + 1, ..., and holds
what every run reports against the rows of the service. A finding names its part and seed; to play it again:
chaos --only PART --seed THAT --rounds 1.

${partNames.map((name) => `  ${name.padEnd(10)} ${parts[name].about}`).join('\n')}

--rounds ends a part after so many rounds. --job plays only histories of ${jobs.join(', ')}. docs/benchmarks.md
has the totals of the last long run.`

if (values.help) console.log(help)
else process.exitCode = await playAll()

async function playAll(): Promise<number> {
  const chosen = chosenOf(values.only.split(','), partNames)
  const chosenJobs = chosenOf(values.job, jobs)
  const minutes = Number(values.minutes)
  const shares = chosen.reduce((sum, name) => sum + parts[name].share, 0)
  const end = new AbortController()
  // Ends after the rounds under way; the second time at once, with every process that was started.
  process.once('SIGINT', () => {
    end.abort()
    process.once('SIGINT', () => process.exit(130))
  })
  process.once('SIGTERM', () => process.exit(143))
  let found = 0
  for (const name of chosen) {
    if (end.signal.aborted) break
    const ms = (minutes * 60_000 * parts[name].share) / shares
    found += await playPart({ name, ms, chosenJobs, signal: end.signal })
  }
  console.log(found === 0 ? 'found nothing' : `FOUND ${found}`)
  return found === 0 ? 0 : 1
}

function chosenOf<Name extends string>(names: readonly string[], known: readonly Name[]): Name[] {
  return names.map((name) => {
    const found = known.find((one) => one === name)
    if (found === undefined) throw new RangeError(`There is no ${name}: ${known.join(', ')}.`)
    return found
  })
}

/** Returns how much was found. */
async function playPart(options: {
  name: PartName
  ms: number
  chosenJobs: readonly Job[]
  signal: AbortSignal
}): Promise<number> {
  const { name, ms, chosenJobs, signal } = options
  const first = Number(values.seed)
  const begun = Date.now()
  const tally = new Tally()
  console.log(`${name}: ${(ms / 60_000).toFixed(1)} minutes from seed ${first}`)
  let rounds = 0
  let found = 0
  try {
    await using part = await parts[name].open({ tally, chosenJobs })
    const playRounds = async () => {
      while (Date.now() < begun + ms && rounds < Number(values.rounds) && !signal.aborted) {
        const seed = first + rounds
        rounds += 1
        const findings = await part
          .play(seed)
          .catch((error: unknown) => [
            `${name}, seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`,
          ])
        for (const finding of findings) console.log(`FOUND ${finding}`)
        found += findings.length
      }
    }
    await Promise.all(Array.from({ length: parts[name].atOnce }, playRounds))
  } catch (error) {
    if (!(error instanceof MissingProgram)) throw error
    console.log(`${name} is left out: ${error.message}`)
    return 0
  }
  const seconds = Math.round((Date.now() - begun) / 1_000)
  console.log(`${name}: ${rounds} rounds in ${seconds} s`)
  for (const line of tally.lines()) console.log(line)
  return found
}
