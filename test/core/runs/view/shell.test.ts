import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { shell } from '../../../../core/runs/view/shell.ts'

test('a command with names of any sort is the same words to a shell', () => {
  const nasty = fc.constantFrom(
    '$(touch x)',
    '`id`',
    "'",
    '"',
    ';',
    '\n',
    ' ',
    '&',
    '*',
    '\\',
    '~',
    '!',
    '#',
    'ñ',
    'a',
  )
  const name = fc.array(nasty, { maxLength: 5 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(name, fc.array(name), (run, files) => {
      const command = shell`printf '%s\\0' watch ${run} --files ${files}`
      const words = execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' }).split('\0').slice(0, -1)
      expect(words).toEqual(['watch', run, '--files', ...files])
    }),
    { seed: 20261122, numRuns: 60 },
  )
})

test('a plain name is typed as it is', () => {
  expect(shell`connector run approve ${'import-1/x'} --count ${3}`).toBe(
    'connector run approve import-1/x --count 3',
  )
})

test('no command is suggested in another way', () => {
  const rooms = ['scripts', 'core', 'workflows', 'worker', 'activities']
  const files = rooms.flatMap((room) =>
    readdirSync(room, { recursive: true, encoding: 'utf8' }).map((name) => join(room, name)),
  )
  const raw = files
    .filter((file) => file.endsWith('.ts'))
    .filter((file) =>
      /(?<!shell`)(connector [a-z]+( [a-z]+)?|chmod \S+|rm -r|--map) "?\$\{(?!command\})/.test(
        readFileSync(file, 'utf8'),
      ),
    )
  expect(raw).toEqual([])
})
