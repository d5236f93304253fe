import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { partNames } from '../test/chaos/part-names.ts'
import { type ChaosRecord, git, played, type PlayedPart, recordSchema } from '../test/chaos/record.ts'
import { type Promised, promises } from './evidence-promises.ts'

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Generated blocks of docs/evidence.md, by name. */
export const evidenceBlocks: Readonly<Record<string, () => string>> = {
  promises: () => describePromises(promises, readRecords()),
  runs: () => describeRuns(readRecords()),
}

/** The totals that `npm run chaos -- --json docs/evidence/NAME.json` wrote, newest first. */
export const readRecords = (): ChaosRecord[] =>
  globSync('docs/evidence/*.json', { cwd: root })
    .map((path) => recordSchema.parse(JSON.parse(read(path))))
    .toSorted((one, other) => other.date.localeCompare(one.date))

/**
 * Each promise, the tests that show it, the commands that try it harder, and what they found last.
 * @throws {Error} a test, its title or a command does not exist
 */
export function describePromises(
  sections: typeof promises,
  records: readonly Pick<ChaosRecord, 'date' | 'commit' | 'parts'>[],
): string {
  const describe = ({ promise, tests, harder = [] }: Promised) => {
    const shown = Object.entries(tests).flatMap(([file, titles]) =>
      titles.map((title) => `- \`${file}\`: ${withoutPlaceholders(checkTitle(file, title))}`),
    )
    const tried = harder.map((command) => `- Harder: \`${checkCommand(command)}\`${lastOf(command, records)}`)
    return [`**${promise}**`, '', ...shown, ...tried].join('\n')
  }
  return Object.entries(sections)
    .map(([heading, all]) => [`## ${heading}`, ...all.map(describe)].join('\n\n'))
    .join('\n\n')
}

const withoutPlaceholders = (title: string) => title.replaceAll(/\$\{[^}]*\}|%[a-z]|\$\w+/g, '…')

function checkTitle(file: string, title: string): string {
  const source = read(file).replaceAll("\\'", "'")
  if (!["'", '"', '`'].some((quote) => source.includes(`${quote}${title}`)))
    throw new Error(`docs/evidence-promises.ts: ${file} has no title that begins with: ${title}`)
  return title
}

/** @throws {Error} a script, a part, a file or a variable of the command does not exist */
export function checkCommand(command: string): string {
  const refuse = (word: string) => {
    throw new Error(`docs/evidence-promises.ts: there is no ${word}, of: ${command}`)
  }
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const [, script] = /npm run (?:-s )?([\w:-]+)/.exec(command) ?? []
  if (script !== undefined && !(script in scripts)) refuse(script)
  for (const part of partsOf(command)) if (!partNames.some((name) => name === part)) refuse(part)
  const [, filter] = /npm run test:soak -- (\S+)/.exec(command) ?? []
  const files = globSync('test/**/*.ts', { cwd: root })
  if (
    filter !== undefined &&
    !files.some((file) => file.includes(filter) && /tags: \[.*'soak'/.test(read(file)))
  )
    refuse(`soak ${filter}`)
  for (const [path] of command.matchAll(/test\/\S+\.ts/g)) if (!files.includes(path)) refuse(path)
  for (const [, name = ''] of command.matchAll(/(\w+)=\S/g))
    if (!files.some((file) => read(file).includes(`process.env['${name}']`))) refuse(name)
  return command
}

const partsOf = (command: string): string[] => /chaos -- --only (\S+)/.exec(command)?.[1]?.split(',') ?? []

/** What the newest record of each of the command's parts says. */
function lastOf(command: string, records: readonly Pick<ChaosRecord, 'date' | 'commit' | 'parts'>[]): string {
  const last = partsOf(command).flatMap((part) => {
    const all = records.flatMap((record) => record.parts.map((played) => ({ ...record, played })))
    const newest = all.find(({ played }) => played.part === part)
    if (newest === undefined) return []
    const { date, commit, played } = newest
    return [
      `${part} ${date.slice(0, 10)} (${commit}), ${number(played.rounds)} rounds, found ${found(played)}`,
    ]
  })
  return last.length === 0 ? '' : `. Last: ${last.join('; ')}`
}

/** Each run with its parts. */
export function describeRuns(records: readonly ChaosRecord[]): string {
  const describe = (part: PlayedPart) =>
    `- **${part.part}**: ${number(part.rounds)} rounds in ${part.seconds} s, from seed ${part.firstSeed}; found ${found(part)}. ${happened(part)}.`
  return records
    .map(({ command, date, commit, machine, parts }) =>
      [
        `\`${command}\`, ${date.slice(0, 16).replace('T', ' ')} UTC, commit ${commit}, ${machine}:`,
        '',
        ...parts.map(describe),
      ].join('\n'),
    )
    .join('\n\n')
}

const number = (value: number) => value.toLocaleString('en-US')
const found = (part: PlayedPart) => (part.found === 0 ? 'nothing' : `**${part.found}**`)
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

function happened({ part, counts, times }: PlayedPart): string {
  const short = (name: string) => (name.startsWith(`${part}: `) ? name.slice(part.length + 2) : name)
  return [
    Object.entries(counts).map(([name, count]) => `${short(name)}: ${number(count)}`),
    Object.entries(times).map(
      ([name, time]) =>
        `${short(name)}: median ${seconds(time.medianMs)}, longest ${seconds(time.longestMs)} of ${time.number}`,
    ),
  ]
    .flat()
    .join('; ')
}

/** A line for each record that is of older code than the product's. */
export function outdatedRecords(): string[] {
  return globSync('docs/evidence/*.json', { cwd: root }).flatMap((path) => {
    const [commit = ''] = recordSchema.parse(JSON.parse(read(path))).commit.split(' ')
    try {
      const since = Number(git('rev-list', '--count', `${commit}..HEAD`, '--', ...played))
      return since === 0 ? [] : [`${basename(path)} is of ${commit}: the product has ${since} commits since.`]
    } catch {
      return [`${basename(path)} is of ${commit}, which is not in this clone.`]
    }
  })
}
