import { execFileSync } from 'node:child_process'
import { cpus, totalmem } from 'node:os'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { partNames } from './part-names.ts'

/** What a part played and found. */
const partSchema = z.strictObject({
  part: z.enum(partNames),
  firstSeed: z.number(),
  rounds: z.number(),
  seconds: z.number(),
  found: z.number(),
  /** How often things happened, by name. */
  counts: z.record(z.string(), z.number()),
  /** How long things took, by name. */
  times: z.record(
    z.string(),
    z.strictObject({ number: z.number(), medianMs: z.number(), longestMs: z.number() }),
  ),
})
export type PlayedPart = z.infer<typeof partSchema>

/** The totals of one `npm run chaos -- --json FILE`. */
export const recordSchema = z.strictObject({
  command: z.string(),
  /** When it began. */
  date: z.iso.datetime(),
  commit: z.string(),
  machine: z.string(),
  parts: z.array(partSchema),
})
type ChaosRecord = z.infer<typeof recordSchema>

/** The folders of what is played with. */
const played = ['activities', 'core', 'worker', 'workflows']

/** Asks git; throws where it can't say. */
const git = (...args: readonly string[]): string =>
  execFileSync('git', args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()

/** A record without parts yet. */
export function beginRecord(args: readonly string[]): ChaosRecord {
  const isChanged = git('status', '--porcelain', '--', ...played) !== ''
  return {
    command: ['npm run chaos --', ...args].join(' '),
    date: new Date().toISOString(),
    commit: `${git('rev-parse', '--short', 'HEAD')}${isChanged ? ' with changes' : ''}`,
    machine: `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 1e9)} GB`,
    parts: [],
  }
}
