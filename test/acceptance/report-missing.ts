import { missingPrograms } from './programs.ts'

/** Names the skipped tests and what to install for them; where `CI` is set, nothing may be skipped. */
export default function setup() {
  const lines = missingPrograms().map(
    ({ names, install, tests, variable }) =>
      `${tests.join(', ')}: skipped, because ${names[0]} is missing. Install it with ${install}, or name it in ${variable}.`,
  )
  if (lines.length > 0 && process.env['CI']) throw new Error(lines.join('\n'))
  for (const line of lines) process.stderr.write(`${line}\n`)
}
