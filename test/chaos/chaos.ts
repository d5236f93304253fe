import { parseArgs } from 'node:util'
import { jobs, playHistory } from './history.ts'
import { Random } from './random.ts'
import { playRanges } from './ranges.ts'
import { Tally } from './surroundings.ts'
import { playWithTemporal } from './temporal.ts'

/** Plays random histories for some minutes, and prints what it did and what it found: `npm run chaos -- --help`. */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    job: { type: 'string', multiple: true, default: [] },
    histories: { type: 'string', default: 'Infinity' },
    // They mostly wait.
    'at-once': { type: 'string', default: '6' },
    temporal: { type: 'string', default: '0' },
    ranges: { type: 'string', default: '0' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(
    'chaos [--minutes 60] [--seed N] [--job NAME ...] [--histories N] [--at-once 6] [--temporal N] [--ranges N]\n' +
      `Plays histories with the seeds N, N + 1, ... of the jobs ${jobs.join(', ')}.\n` +
      'A finding names its job and seed: chaos --seed THAT --job JOB --histories 1.\n' +
      '--temporal plays N imports first, one after the other, each with a Temporal dev server that is killed with its worker.\n' +
      '--ranges plays no histories: it reads N drifting lists in ranges, with the seeds N, N + 1, ...',
  )
} else process.exitCode = Number(values.ranges) > 0 ? await readLists() : await play()

async function readLists(): Promise<number> {
  const begun = Date.now()
  const tally = new Tally()
  const [reads, seed] = [Number(values.ranges), Number(values.seed)]
  console.log(`seed ${seed}, ${reads} reads in ranges`)
  const found = await playRanges({ reads, seed, tally })
  for (const finding of found) console.log(`FOUND ${finding}`)
  return sumUp({ title: `${reads} reads`, begun, tally, found })
}

function sumUp(of: { title: string; begun: number; tally: Tally; found: readonly string[] }): number {
  const { title, begun, tally, found } = of
  console.log(`${title} in ${Math.round((Date.now() - begun) / 1_000)} s`)
  for (const [name, number] of [...tally.counts].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${String(number).padStart(8)}  ${name}`)
  console.log(found.length === 0 ? 'found nothing' : `FOUND ${found.length}`)
  return found.length === 0 ? 0 : 1
}

async function play(): Promise<number> {
  let until = Date.now() + Number(values.minutes) * 60_000
  process.once('SIGINT', () => (until = 0))
  const begun = Date.now()
  const first = Number(values.seed)
  const chosen = jobs.filter((job) => values.job.length === 0 || values.job.includes(job))
  const tally = new Tally()
  const found: string[] = []
  let histories = 0
  console.log(`seed ${first}, ${values.minutes} minutes, ${chosen.join(', ')}`)
  for (let real = 0; real < Number(values.temporal); real += 1) {
    const findings = await playWithTemporal({ seed: first + real, tally })
    for (const finding of findings) console.log(`FOUND ${finding}`)
    found.push(...findings)
  }
  const playSome = async () => {
    while (Date.now() < until && histories < Number(values.histories)) {
      const seed = first + histories
      histories += 1
      const job = new Random(seed).pick(chosen)
      const findings = await playHistory({ seed, job, tally }).catch((error: unknown) => [
        `${job}, seed ${seed}: ${error instanceof Error ? error.stack : String(error)}`,
      ])
      tally.add(`job ${job}`)
      for (const finding of findings) console.log(`FOUND ${finding}`)
      found.push(...findings)
    }
  }
  await Promise.all(Array.from({ length: Number(values['at-once']) }, playSome))
  return sumUp({ title: `${histories} histories`, begun, tally, found })
}
