import { parseArgs } from 'node:util'
import buildGateway from './versitygw.ts'
import { playFaults } from './play-faults.ts'

// `npm run chaos:bucket -- --runs 500 --away 30 --seed 1`: publishes to a bucket with faults, and prints what it found.
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    away: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
  },
})
await buildGateway()
for (const format of ['csv', 'parquet'] as const) {
  const played = await playFaults({
    seed: Number(values.seed),
    runs: Number(values.runs),
    awayMs: Number(values.away) * 1000,
    format,
  })
  console.log(format, played)
  if (played.problems.length > 0) process.exitCode = 1
}
