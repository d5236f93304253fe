import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Commands } from '../../scripts/command-line.ts'
import { commands } from '../../scripts/commands/commands.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })]
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const withoutCode = (text: string) => text.replaceAll(/```[^]*?```|`[^`\n]*`/g, '')

/** The anchors that GitHub gives the headings of a page. */
const anchorsOf = (text: string) =>
  [...text.replaceAll(/```[^]*?```/g, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  )

test('every link of README and docs leads to a file and a heading that exist', () => {
  const broken = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].flatMap(
      ([link, path = '', anchor]) => {
        const target = path === '' ? page : normalize(join(dirname(page), path))
        if (!existsSync(join(root, target))) return [`${page}: ${link}`]
        if (anchor === undefined || anchorsOf(read(target)).includes(anchor)) return []
        return [`${page}: ${link}`]
      },
    ),
  )
  expect(broken).toEqual([])
})

test('every command that README and docs name exists', () => {
  const find = (all: Commands, [name = '', ...names]: string[]): boolean => {
    const listed = all[name]
    return (
      listed !== undefined && (!('commands' in listed) || names.length === 0 || find(listed.commands, names))
    )
  }
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/(?:`|\n)(?:npx )?connector ([a-z]+)(?: ([a-z]+)\b)?/g)].map(
      ([text, ...names]) => ({ page, text, names: names.filter((name) => name !== undefined) }),
    ),
  )
  expect(named.length).toBeGreaterThan(40)
  expect(named.filter(({ names }) => !find(commands, names))).toEqual([])
})

test('the guide names every command as its reader has to type it, in a folder with the package', () => {
  const short = read('docs/guia-rapida.md').match(/(?:`|^)(?:connector|run) .*/gm)
  expect(short ?? []).toEqual([])
})

test('every npm script that README and docs name exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)].map(([, name = '']) => ({ page, name })),
  )
  expect(named.length).toBeGreaterThan(20)
  expect(named.filter(({ name }) => !(name in scripts))).toEqual([])
})

test('every path of the code that README and docs name exists', () => {
  const path = /`((?:core|workflows|activities|worker|scripts|sandbox|test|bench|docs)\/[\w./-]*)`/g
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(path)].map(([, name = '']) => ({ page, name })),
  )
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(({ name }) => !existsSync(join(root, name)))).toEqual([])
})
