import { missingPrograms } from './programs.ts'

/** Names the skipped tests and what to install for them; where `CI` is set, only what needs more than a program may be. */
export default function setup() {
  const missing = missingPrograms()
  const lines = missing.map(
    ({ names, install, tests, variable, needs }) =>
      `${tests.join(', ')}: skipped, because ${names[0]} is missing. Install it with ${install}, or name it in ${variable}.` +
      (needs === undefined ? '' : ` It needs ${needs}.`),
  )
  if (missing.some(({ needs }) => needs === undefined) && process.env['CI']) throw new Error(lines.join('\n'))
  for (const line of lines) process.stderr.write(`${line}\n`)
}
