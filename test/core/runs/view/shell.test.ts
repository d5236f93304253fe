import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { connector, shell } from '../../../../core/runs/view/shell.ts'
import { commands } from '../../../../scripts/commands/commands.ts'

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
  expect(connector`run approve ${'import-1/x'} --count ${3}`).toBe(
    'npx connector run approve import-1/x --count 3',
  )
})

test('no command is suggested in another way', () => {
  const rooms = ['scripts', 'core', 'workflows', 'worker', 'activities']
  const lines = rooms
    .flatMap((room) =>
      readdirSync(room, { recursive: true, encoding: 'utf8' }).map((name) => join(room, name)),
    )
    .filter((file) => file.endsWith('.ts') && !file.endsWith('variables.ts'))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'))
    .filter((line) => !/^\s*(\/\/|\/?\*)/.test(line))
  const names = Object.keys(commands).join('|')
  const raw = lines.filter(
    (line) =>
      new RegExp(`\\bconnector (${names})\\b`).test(line) ||
      /(?<!shell`)(chmod \S+|rm -r|--map) "?\$\{(?!command\})/.test(line),
  )
  expect(raw).toEqual([])
})
